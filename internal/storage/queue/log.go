package queue

import (
	"context"
	"log/slog"
	"strings"
)

// libraryLog is what River logs. Which process leads it tries to settle again and again by itself: that one attempt
// took longer than its five seconds, as on a disk that stalls, alarms nobody; that several in a row did is a warning.
type libraryLog struct{ slog.Handler }

// alarming is from which attempt on.
const alarming = 4

// Handle implements slog.Handler.
func (l libraryLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Level > slog.LevelInfo && strings.Contains(r.Message, "Elector") {
		attempt := int64(alarming)
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "attempt" && a.Value.Kind() == slog.KindInt64 {
				attempt = a.Value.Int64()
			}
			return true
		})
		if r.Level = slog.LevelWarn; attempt < alarming {
			r.Level = slog.LevelInfo
		}
		if !l.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return l.Handler.Handle(ctx, r) //nolint:wrapcheck // a handler passes on
}

// WithAttrs implements slog.Handler.
func (l libraryLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return libraryLog{l.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (l libraryLog) WithGroup(name string) slog.Handler { return libraryLog{l.Handler.WithGroup(name)} }
