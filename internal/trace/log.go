package trace

import (
	"context"
	"log/slog"

	api "go.opentelemetry.io/otel/trace"
)

// The keys of a log line within a span.
const (
	TraceIDKey = "trace_id"
	SpanIDKey  = "span_id"
)

// Logs has every line that is logged within a span say which one.
func Logs(h slog.Handler) slog.Handler { return logs{h} }

type logs struct{ slog.Handler }

// Handle implements slog.Handler.
func (l logs) Handle(ctx context.Context, r slog.Record) error {
	if c := api.SpanContextFromContext(ctx); c.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String(TraceIDKey, c.TraceID().String()), slog.String(SpanIDKey, c.SpanID().String()))
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l logs) WithAttrs(attrs []slog.Attr) slog.Handler { return logs{l.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (l logs) WithGroup(name string) slog.Handler { return logs{l.Handler.WithGroup(name)} }
