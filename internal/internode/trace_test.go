package internode_test

import (
	"io"
	"log/slog"
	"net/http"
	"testing"

	"millrace/internal/internode"
	"millrace/internal/trace"
)

// TestTraceGoesAlong: what a node does for another is in the trace that the other one asks in; where that asks in none,
// it is in none.
func TestTraceGoesAlong(t *testing.T) {
	t.Parallel()
	tracer, err := trace.New(trace.Options{}, trace.NewExporter(trace.ExporterOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	to := &node{self: internode.Greeting{Node: "b", Speaks: internode.Spoken()}}
	to.Server = internode.NewServer(internode.ServerOptions{
		Key: key(1), Self: to.self, Now: to.clock.now, Logger: slog.New(slog.DiscardHandler), Tracer: tracer,
	})
	to.listen(t)
	from := start(t, "a", key(1), internode.Spoken())
	to.Handle("GET /trace", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, trace.Parent(r.Context()))
	}))
	ask := func(r *http.Request) string {
		t.Helper()
		res, err := from.client.Do(r.Context(), to.peer(), r)
		if err != nil {
			t.Fatal(err)
		}
		return text(t, res)
	}
	if got := ask(get(t, "/trace")); got != "" {
		t.Errorf("without a trace it is in %q", got)
	}
	ctx, span := tracer.Begin(t.Context(), "a request", trace.Server)
	defer span.End(nil)
	const id = len("00-0af7651916cd43dd8448eb211c80319c")
	here, there := trace.Parent(ctx), ask(get(t, "/trace").WithContext(ctx))
	if len(there) < id || there[:id] != here[:id] || there == here {
		t.Errorf("it is in %q, want a span in the trace of %q", there, here)
	}
}
