package db

import (
	"context"
	"log/slog"
)

// riverLog is the log that River gets: its news are details to this service's log, and its details are left out.
func riverLog(log *slog.Logger) *slog.Logger { return slog.New(riverHandler{log.Handler()}) }

type riverHandler struct{ slog.Handler }

func (h riverHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo && h.Handler.Enabled(ctx, riverLevel(l))
}

func (h riverHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = riverLevel(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h riverHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return riverHandler{h.Handler.WithAttrs(a)}
}

func (h riverHandler) WithGroup(n string) slog.Handler { return riverHandler{h.Handler.WithGroup(n)} }

func riverLevel(l slog.Level) slog.Level {
	if l < slog.LevelWarn {
		return slog.LevelDebug
	}
	return l
}
