package db

import (
	"context"
	"log/slog"
)

// riverLog is the log that River gets: its news are details to this service's log, and its details are left out.
func riverLog(log *slog.Logger) *slog.Logger { return slog.New(riverHandler{log.Handler()}) }

type riverHandler struct{ slog.Handler }

func (rh riverHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo && rh.Handler.Enabled(ctx, riverLevel(l))
}

func (rh riverHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = riverLevel(r.Level)
	return rh.Handler.Handle(ctx, r)
}

func (rh riverHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return riverHandler{rh.Handler.WithAttrs(a)}
}

func (rh riverHandler) WithGroup(n string) slog.Handler { return riverHandler{rh.Handler.WithGroup(n)} }

func riverLevel(l slog.Level) slog.Level {
	if l < slog.LevelWarn {
		return slog.LevelDebug
	}
	return l
}
