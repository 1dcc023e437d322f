package queue

import (
	"context"
	"strings"
	"testing"

	"millrace/internal/control/job"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/trace"
)

// TestJobsAreInTraces: a job is in the trace of what has caused it, and one that nothing has caused in its own. The
// trace does not make another job of one with the same key.
func TestJobsAreInTraces(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		tracer, err := trace.New(trace.Options{}, trace.NewExporter(trace.ExporterOptions{}))
		must(t, err)
		ctx, span := tracer.Begin(t.Context(), "a request", trace.Server)
		defer span.End(nil)
		other, again := tracer.Begin(t.Context(), "another", trace.Server)
		defer again.End(nil)
		must(t, d.Enqueue(ctx, job.New("test.kind", "a", nil)))
		must(t, d.Enqueue(other, job.New("test.kind", "a", nil)))
		must(t, d.Enqueue(t.Context(), job.New("test.kind", "b", map[string]string{"alone": "yes"})))
		type seen struct{ args, in string }
		found := make(chan seen, 3)
		q, err := New(Options{
			DB: d, Node: "a", Classes: testClasses(), Tracer: tracer,
			Handlers: everyKind(func(ctx context.Context, j job.Job) error {
				found <- seen{string(j.Args), trace.Parent(ctx)}
				return nil
			}),
		})
		must(t, err)
		stop := runQueue(t, q)
		number := func(parent string) string { return strings.Split(parent+"--", "-")[1] }
		for range 2 {
			s := got(t, found, "a job")
			alone := strings.Contains(s.args, "alone")
			if same := number(s.in) == number(trace.Parent(ctx)); same == alone || s.in == trace.Parent(ctx) ||
				number(s.in) == "" {
				t.Errorf("job with %s is in %q, what caused one of them in %q", s.args, s.in, trace.Parent(ctx))
			}
		}
		ended(t, d, "test.kind", "a")
		ended(t, d, "test.kind", "b")
		stop()
		if len(found) > 0 {
			t.Errorf("there is another job: %+v", <-found)
		}
	})
}
