package queue

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"millrace/internal/storage/db"
)

// libraryLog is what River logs. Which process leads it tries to settle again and again by itself: that one attempt
// took longer than its five seconds, as on a disk that stalls, alarms nobody; that several in a row did is a warning.
// While the database is away, each of its parts says so again and again: the first is a warning, and the others are for
// debugging.
type libraryLog struct {
	slog.Handler
	outage *outage
}

// outage is how long the database has been away. Its methods may be called at the same time.
type outage struct {
	mu    sync.Mutex
	since time.Time // zero: it is not away
}

// begin notes that the database is away, and reports whether that is new.
func (o *outage) begin(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := o.since.IsZero()
	if first {
		o.since = now
	}
	return first
}

// end notes that the database is there, and gives how long it was away; false: it was not.
func (o *outage) end(now time.Time) (took time.Duration, was bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was = !o.since.IsZero()
	took = now.Sub(o.since)
	o.since = time.Time{}
	return took, was
}

// alarming is from which attempt on.
const alarming = 4

// Handle implements slog.Handler.
func (l libraryLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Level > slog.LevelInfo && ofOutage(r) {
		short := slog.NewRecord(r.Time, slog.LevelDebug, r.Message, r.PC)
		if l.outage.begin(r.Time) {
			short.Level, short.Message = slog.LevelWarn, awayText
		}
		if !l.Enabled(ctx, short.Level) {
			return nil
		}
		r.Attrs(func(a slog.Attr) bool { short.AddAttrs(a); return true })
		return l.Handler.Handle(ctx, short) //nolint:wrapcheck // a handler passes on
	}
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
	return libraryLog{l.Handler.WithAttrs(attrs), l.outage}
}

// WithGroup implements slog.Handler.
func (l libraryLog) WithGroup(name string) slog.Handler {
	return libraryLog{l.Handler.WithGroup(name), l.outage}
}

// awayText begins an outage in the log, and backText ends it.
const (
	awayText = "the queue of jobs can't reach the database: jobs wait"
	backText = "the queue of jobs reaches the database again"
)

// ofOutage reports whether a record has an error that says that the database is away. River has many of them as text.
func ofOutage(r slog.Record) (away bool) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "err" && a.Key != "error" {
			return true
		}
		if err, is := a.Value.Any().(error); is {
			away = db.Away(err)
			return !away
		}
		text := a.Value.String()
		away = slices.ContainsFunc(awayWords(), func(w string) bool { return strings.Contains(text, w) })
		return !away
	})
	return away
}

// awayWords are what errors of the driver contain when there is no server, when it goes, and when it begins.
func awayWords() []string {
	return []string{
		"failed to connect to ", "connection refused", "connection reset by peer", "broken pipe", "unexpected EOF",
		"conn closed", "the database can't be reached", "SQLSTATE 57P01", "SQLSTATE 57P02", "SQLSTATE 57P03",
	}
}
