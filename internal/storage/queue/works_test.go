package queue

import (
	"context"
	"slices"
	"testing"

	"millrace/internal/control/job"
	"millrace/internal/id"
	"millrace/internal/storage/db/dbtest"
)

// TestQueuesByNode: a node works on its queues alone, one on none is there all the same, and what waits for nodes with
// other queues is begun as soon as one comes.
func TestQueuesByNode(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		f := newFleet(t, url)
		node := func(name string, works ...job.Queue) {
			t.Helper()
			var handlers []job.Handler
			for _, kind := range kinds() {
				handlers = append(handlers, job.Handler{Kind: kind, Work: func(_ context.Context, j job.Job) error {
					a, err := job.Decode[args](j)
					f.begun <- started{name, j.Kind, a.Key}
					return err
				}})
			}
			q, err := New(Options{
				DB: f.db, Node: id.Node(name), Workers: 1, Handlers: handlers,
				Works: func(q job.Queue) bool { return slices.Contains(works, q) },
			})
			must(t, err)
			runQueue(t, q)
		}
		node("viewers")
		node("api", job.Prompt, job.Cleanup)
		expect := func(name string, n int, in ...job.Queue) {
			t.Helper()
			for range n {
				if j := got(t, f.begun, "a job for "+name); j.node != name || !slices.Contains(in, job.Queue(j.key)) {
					t.Errorf("%s does %s of the queue %s", j.node, j.kind, j.key)
				}
			}
			if n := len(f.begun); n > 0 {
				t.Errorf("%d more jobs run", n)
			}
		}
		// Those that nobody works on yet come first.
		all := job.AllClasses()
		slices.SortStableFunc(all, func(a, b job.Class) int {
			rank := map[job.Queue]int{job.Prompt: 1, job.Cleanup: 1}
			return rank[a.Queue] - rank[b.Queue]
		})
		early, late := 0, 0
		for _, c := range all {
			for _, kind := range c.Kinds {
				f.ask(t, kind, c.Queue, string(c.Queue), false)
				if c.Queue == job.Prompt || c.Queue == job.Cleanup {
					early++
				} else {
					late++
				}
			}
		}
		expect("api", early, job.Prompt, job.Cleanup)
		rest := []job.Queue{job.Clips, job.Fetching, job.Background, job.Speech}
		node("worker", rest...)
		expect("worker", late, rest...)
	})
}
