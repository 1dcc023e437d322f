package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/leaktest"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

func TestMain(m *testing.M) {
	childMain()
	leaktest.Main(m)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience is for machines that have much else to do; nothing here takes nearly as long.
const patience = 5 * time.Minute

// got waits for a value.
func got[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case v := <-from:
		return v
	case <-limit.C:
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// testClasses are those of the service, with kinds of the tests' own in them: test.kind, test.slow and test.fetch, and
// of each queue test. and its name.
func testClasses() job.Classes {
	all := job.AllClasses()
	for i := range all {
		all[i].Kinds = append(all[i].Kinds, "test."+string(all[i].Queue))
		switch all[i].Queue {
		case job.Prompt:
			all[i].Kinds = append(all[i].Kinds, "test.kind")
		case job.Fetching:
			all[i].Kinds = append(all[i].Kinds, "test.slow", "test.fetch")
		case job.Clips, job.Background, job.Speech, job.Cleanup:
		}
	}
	return all
}

// newJob is one of a kind of the tests' own.
func newJob(kind, key string) job.Insert {
	j := job.New(kind, key, nil)
	j.Queue, _ = testClasses().Of(kind)
	return j
}

// testKinds are test.kind, and one kind of each queue.
func testKinds() []string {
	kinds := []string{"test.kind"}
	for _, c := range job.AllClasses() {
		kinds = append(kinds, "test."+string(c.Queue))
	}
	return kinds
}

// everyKind are handlers of testKinds.
func everyKind(work func(context.Context, job.Job) error) (all []job.Handler) {
	for _, kind := range testKinds() {
		all = append(all, job.Handler{Kind: kind, Work: work})
	}
	return all
}

// ended waits until a job has come to its end.
func ended(t *testing.T, d *db.DB, kind, key string) {
	t.Helper()
	limit, tick := time.NewTimer(patience), time.NewTicker(20*time.Millisecond)
	defer limit.Stop()
	defer tick.Stop()
	for {
		n, err := d.Unfinished(t.Context(), kind, key)
		must(t, err)
		if n == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("job %s %s does not end", kind, key)
		}
	}
}

// run works jobs in the background until the returned stop is called, or the test ends.
func run(t *testing.T, d *db.DB, node id.Node, log *slog.Logger, handlers ...job.Handler) (stop func()) {
	t.Helper()
	q, err := New(Options{DB: d, Node: node, Classes: testClasses(), Handlers: handlers, Logger: log})
	must(t, err)
	return runQueue(t, q)
}

func runQueue(t *testing.T, q *Queue) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := q.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
	t.Cleanup(stop) // before the database is closed
	return stop
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestWork(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		jobs := make(chan job.Job, 10)
		run(t, d, "n", nil, job.Handler{
			Kind: "test.kind", MaxAttempts: 3, Work: func(_ context.Context, j job.Job) error {
				jobs <- j
				return nil
			},
		})
		began := time.Now()
		must(t, d.Enqueue(t.Context(), job.New("test.kind", "a", map[string]string{"x": "it's ?"})))
		j := got(t, jobs, "the job")
		t.Logf("started after %v", time.Since(began))
		args, err := job.Decode[map[string]string](j)
		must(t, err)
		if j.Kind != "test.kind" || j.Attempt != 1 || j.MaxAttempts != 3 || j.ID == 0 || args["x"] != "it's ?" ||
			j.Last() {
			t.Errorf("got %+v with %v", j, args)
		}
		ended(t, d, "test.kind", "a")
		must(t, d.Enqueue(t.Context(), job.New("test.kind", "a", nil))) // a key is free again once its job has ended
		got(t, jobs, "the second job of the key")
		later := job.New("test.kind", "later", nil)
		later.At = time.Now().Add(1500 * time.Millisecond)
		must(t, d.Enqueue(t.Context(), later))
		got(t, jobs, "the later job")
		if time.Now().Before(later.At) {
			t.Error("it came too early")
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		handler  job.Handler
		attempts int
		log      string
	}{
		{"retried", job.Handler{MaxAttempts: 3, Work: func(_ context.Context, j job.Job) error {
			if j.Attempt == 1 {
				return errors.New("once")
			}
			return nil
		}}, 2, "final=false"},
		{"permanent", job.Handler{MaxAttempts: 3, Work: func(context.Context, job.Job) error {
			return fmt.Errorf("read: %w", fault.New(fault.Invalid, "broken"))
		}}, 1, "level=WARN msg=\"job attempt ended in an error\""},
		{"last of another's", job.Handler{MaxAttempts: 1, Work: func(context.Context, job.Job) error {
			return &fault.Error{Kind: fault.Unavailable, Messages: []fault.Message{{Text: "dead"}}, Remote: true}
		}}, 1, "level=WARN msg=\"job attempt ended in an error\""},
		{
			"last of ours",
			job.Handler{
				MaxAttempts: 1,
				Work:        func(context.Context, job.Job) error { return fault.New(fault.Unavailable, "away") },
			},
			1, "level=ERROR",
		},
		{"last attempt", job.Handler{MaxAttempts: 2, Work: func(_ context.Context, j job.Job) error {
			return fmt.Errorf("again, last %v", j.Last())
		}}, 2, "again, last true"},
		{
			"panic",
			job.Handler{MaxAttempts: 1, Work: func(context.Context, job.Job) error { panic("boo") }},
			1,
			"panic: boo",
		},
		{
			"timeout",
			job.Handler{
				MaxAttempts: 1, Timeout: 300 * time.Millisecond, Work: func(ctx context.Context, _ job.Job) error {
					<-ctx.Done()
					return context.Cause(ctx)
				},
			},
			1, "deadline",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
				var log buffer
				runs := make(chan int, 10)
				h := tt.handler
				h.Kind = "test.kind"
				h.Work = func(ctx context.Context, j job.Job) error {
					runs <- j.Attempt
					return tt.handler.Work(ctx, j)
				}
				must(t, d.Enqueue(t.Context(), job.New("test.kind", "a", nil)))
				run(t, d, "n", slog.New(slog.NewTextHandler(&log, nil)), h)
				for want := 1; want <= tt.attempts; want++ {
					if n := got(t, runs, "an attempt"); n != want {
						t.Errorf("attempt %d, want %d", n, want)
					}
				}
				ended(t, d, "test.kind", "a")
				if len(runs) > 0 {
					t.Errorf("more than %d attempts", tt.attempts)
				}
				if !strings.Contains(log.String(), tt.log) {
					t.Errorf("log %q, want one with %q", log.String(), tt.log)
				}
			})
		})
	}
}

func TestSnooze(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		attempts := make(chan int, 10)
		n := 0
		run(t, d, "n", nil, job.Handler{
			Kind: "test.kind", MaxAttempts: 2, Work: func(_ context.Context, j job.Job) error {
				attempts <- j.Attempt
				if n++; n < 4 {
					return job.Snooze(50 * time.Millisecond)
				}
				return nil
			},
		})
		must(t, d.Enqueue(t.Context(), job.New("test.kind", "a", nil)))
		for range 4 { // more often than there are attempts
			if a := got(t, attempts, "a run"); a != 1 {
				t.Errorf("attempt %d after a snooze, want 1", a)
			}
		}
		ended(t, d, "test.kind", "a")
	})
}

// TestStorageAway: what the service's storage is to blame for is put off and is no attempt.
func TestStorageAway(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		attempts := make(chan job.Job, 10)
		n := 0
		run(t, d, "n", nil, job.Handler{
			Kind: "test.kind", MaxAttempts: 1, Work: func(_ context.Context, j job.Job) error {
				attempts <- j
				if n++; n < 3 {
					return fmt.Errorf("store: %w", fault.Ours(fault.New(fault.Unavailable, "the storage is away")))
				}
				return nil
			},
		})
		must(t, d.Enqueue(t.Context(), job.New("test.kind", "a", nil)))
		var age time.Duration
		for range 3 {
			j := got(t, attempts, "a run")
			if j.Attempt != 1 || j.Age < age {
				t.Errorf("attempt %d at the age of %s, want 1 at %s or more", j.Attempt, j.Age, age)
			}
			age = j.Age
		}
		if age < 2*time.Second {
			t.Errorf("the third run was at the age of %s", age)
		}
		ended(t, d, "test.kind", "a")
	})
}

func TestAwhile(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]time.Duration{
		0: 2 * time.Second, 8 * time.Second: 2 * time.Second, time.Minute: 15 * time.Second, time.Hour: 5 * time.Minute,
	} {
		if got, most := awhile(age, 0), awhile(age, 1); got != want || most != want+want/5 {
			t.Errorf("at the age of %s: %s to %s, want %s", age, got, most, want)
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		q, err := New(Options{DB: d, Node: "other"}) // any process may cancel
		must(t, err)
		started, causes := make(chan bool, 1), make(chan error, 1)
		run(t, d, "n", nil, job.Handler{Kind: "test.kind", Work: func(ctx context.Context, _ job.Job) error {
			started <- true
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		}})
		waiting := job.New("test.kind", "waiting", nil)
		waiting.At = time.Now().Add(time.Hour)
		must(t, d.Enqueue(t.Context(), job.New("test.kind", "running", nil), waiting))
		got(t, started, "the start")
		must(t, q.Cancel(t.Context(), "test.kind", "waiting"))
		ended(t, d, "test.kind", "waiting")
		began := time.Now()
		must(t, q.Cancel(t.Context(), "test.kind", "running"))
		if cause := got(t, causes, "the end of the context"); !errors.Is(cause, job.ErrCancelled) {
			t.Errorf("cause %v, want %v", cause, job.ErrCancelled)
		}
		t.Logf("cancelled after %v", time.Since(began))
		ended(t, d, "test.kind", "running")
	})
}

// TestStop says that a stop ends the running job's context, gives the job back and counts no attempt.
func TestStop(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		attempts := make(chan int, 10)
		block := true
		h := job.Handler{Kind: "test.kind", MaxAttempts: 1, Work: func(ctx context.Context, j job.Job) error {
			attempts <- j.Attempt
			if block {
				<-ctx.Done()
				return fault.New(fault.Invalid, "whatever a handler makes of a stop")
			}
			return nil
		}}
		stop := run(t, d, "n", nil, h)
		must(t, d.Enqueue(t.Context(), job.New("test.kind", "a", nil)))
		got(t, attempts, "the start")
		stop()
		if n, err := d.Unfinished(t.Context(), "test.kind", "a"); n != 1 || err != nil {
			t.Fatalf("%d unfinished jobs after a stop (%v), want 1", n, err)
		}
		block = false
		run(t, d, "n", nil, h)
		if a := got(t, attempts, "the second start"); a != 1 {
			t.Errorf("attempt %d after a stop, want 1", a)
		}
		ended(t, d, "test.kind", "a")
	})
}

// TestLaterOverARestart keeps a job that is to be done later over the end of the process and of the database's
// connection.
func TestLaterOverARestart(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		ran := make(chan time.Time, 10)
		h := job.Handler{Kind: "test.kind", Work: func(context.Context, job.Job) error {
			ran <- time.Now()
			return nil
		}}
		first, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
		must(t, err)
		stop := run(t, first, "n", nil, h)
		later := job.New("test.kind", "a", nil)
		later.At = time.Now().Add(3 * time.Second)
		must(t, first.Enqueue(t.Context(), later, later)) // one of them
		stop()
		must(t, first.Close())
		d := dbtest.Open(t, url)
		run(t, d, "n", nil, h)
		if at := got(t, ran, "the job"); at.Before(later.At) {
			t.Errorf("it came %v early", later.At.Sub(at))
		}
		ended(t, d, "test.kind", "a")
		if len(ran) > 0 {
			t.Error("it ran twice")
		}
	})
}

// TestLostNode lets one node take over from another that is not heard of any more.
func TestLostNode(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		q, err := New(Options{DB: d, Node: "alive"})
		must(t, err)
		must(t, d.SeeNode(t.Context(), "silent"))
		must(t, q.watchNodes(t.Context()))
		if lost, err := d.LostNodes(t.Context(), -time.Minute); err != nil || len(lost) != 2 {
			t.Errorf("nodes %v (%v), want both: a silence of less than %v is none", lost, err, lostAfter)
		}
		q.lostAfter = -time.Minute // everybody is silent
		must(t, q.watchNodes(t.Context()))
		if lost, err := d.LostNodes(t.Context(), -time.Minute); err != nil || len(lost) != 1 || lost[0] != "alive" {
			t.Errorf("nodes %v (%v), want the living one only", lost, err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	work := func(context.Context, job.Job) error { return nil }
	for name, o := range map[string]Options{
		"no database":        {Node: "n"},
		"no node":            {DB: d},
		"no kind":            {DB: d, Node: "n", Handlers: []job.Handler{{Work: work}}},
		"no work":            {DB: d, Node: "n", Classes: testClasses(), Handlers: []job.Handler{{Kind: "test.kind"}}},
		"a kind in no class": {DB: d, Node: "n", Handlers: []job.Handler{{Kind: "test.kind", Work: work}}},
		"a kind twice": {
			DB: d, Node: "n", Classes: testClasses(),
			Handlers: []job.Handler{{Kind: "test.kind", Work: work}, {Kind: "test.kind", Work: work}},
		},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: made", name)
		}
	}
}

func TestRunWithoutHandlers(t *testing.T) {
	t.Parallel()
	run(t, dbtest.Open(t, dbtest.SQLite(t)), "n", nil)()
}

func TestDelay(t *testing.T) {
	t.Parallel()
	last := time.Duration(0)
	for attempt := range 20 {
		low, high := delay(attempt, 0), delay(attempt, 1)
		if low < last || high <= low || high > longestDelay*6/5 || low < 2*time.Second {
			t.Errorf("attempt %d waits %v to %v after %v", attempt, low, high, last)
		}
		last = low
	}
}

// TestOtherProcess on the same database is told of, once, by the one that comes second.
func TestOtherProcess(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		must(t, d.SeeNode(t.Context(), "first"))
		var log buffer
		q, err := New(Options{DB: d, Node: "second", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		must(t, err)
		must(t, q.start(t.Context()))
		must(t, q.watchNodes(t.Context()))
		if n := strings.Count(log.String(), `msg="another process runs on this database" node=first`); n != 1 ||
			strings.Contains(log.String(), "node=second") {
			t.Errorf("it is told %d times:\n%s", n, log.String())
		}
	})
}
