package queue

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"millrace/internal/control/job"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// placesOf a queue on a node of so many workers.
func placesOf(queue job.Queue, workers int) int {
	for _, c := range job.AllClasses() {
		if c.Queue == queue {
			return c.Places(workers)
		}
	}
	return 0
}

// started is a job that a node has begun.
type started struct{ node, kind, key string }

// fleet is nodes of the service whose jobs that nobody waits for do not come to an end.
type fleet struct {
	db      *db.DB
	begun   chan started // of jobs that somebody waits for
	blocked chan started
}

// args are what the jobs of a fleet say of themselves.
type args struct {
	Key   string
	Block bool
}

func newFleet(t *testing.T, url string) *fleet {
	t.Helper()
	return &fleet{db: dbtest.Open(t, url), begun: make(chan started, 1000), blocked: make(chan started, 1000)}
}

// node starts one with a handler for every kind there is.
func (f *fleet) node(t *testing.T, name string, classes job.Classes) {
	t.Helper()
	var handlers []job.Handler
	for _, kind := range kinds() {
		handlers = append(handlers, job.Handler{Kind: kind, Work: func(ctx context.Context, j job.Job) error {
			a, err := job.Decode[args](j)
			if err != nil || !a.Block {
				f.begun <- started{name, j.Kind, a.Key}
				return err
			}
			f.blocked <- started{name, j.Kind, a.Key}
			<-ctx.Done()
			return ctx.Err()
		}})
	}
	q, err := New(Options{DB: f.db, Node: id.Node(name), Workers: 1, Classes: classes, Handlers: handlers})
	must(t, err)
	runQueue(t, q)
}

// ask inserts a job of an owner of its own into a queue.
func (f *fleet) ask(t *testing.T, kind string, queue job.Queue, key string, block bool) {
	t.Helper()
	j := job.New(kind, key, args{key, block})
	j.Queue, j.Owner = queue, key
	must(t, f.db.Enqueue(t.Context(), j))
}

// kinds are all there are, each once.
func kinds() (all []string) {
	for _, c := range job.AllClasses() {
		all = append(all, c.Kinds...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestAwaitedWaitForNone has every place that what nobody waits for can have be taken by jobs that do not come to an
// end, and more of them wait: each kind that somebody waits for is run.
func TestAwaitedWaitForNone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		f := newFleet(t, url)
		f.node(t, "n", nil)
		taken := 0
		for _, c := range job.AllClasses() {
			if c.Awaited {
				continue
			}
			taken += c.Places(1)
			for _, kind := range c.Kinds {
				for n := range c.Places(1) + 2 {
					f.ask(t, kind, c.Queue, strconv.Itoa(n), true)
				}
			}
		}
		for range taken {
			got(t, f.blocked, "jobs that nobody waits for")
		}
		for _, c := range job.AllClasses() {
			if !c.Awaited {
				continue
			}
			for _, kind := range c.Kinds {
				f.ask(t, kind, c.Queue, "awaited in "+string(c.Queue), false)
				if j := got(t, f.begun, kind+" behind what nobody waits for"); j.kind != kind {
					t.Errorf("got %+v, want a job %s", j, kind)
				}
			}
		}
		if n := len(f.blocked); n > 0 {
			t.Errorf("%d more jobs than there are places run", n)
		}
	})
}

// TestFetchingHoldsUpNothing has as many jobs as may fetch from hosts that never come to an end: recordings end, and
// clips are made.
func TestFetchingHoldsUpNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		f := newFleet(t, url)
		f.node(t, "n", nil)
		for n := range placesOf(job.Fetching, 1) + 1 {
			f.ask(t, "track.ingest", job.Fetching, strconv.Itoa(n), true)
		}
		for range placesOf(job.Fetching, 1) {
			got(t, f.blocked, "a job that waits for its host")
		}
		f.ask(t, "asset.finish", job.Prompt, "a", false)
		got(t, f.begun, "the end of a recording")
		f.ask(t, "asset.ingest", job.Clips, "b", false)
		got(t, f.begun, "a clip")
		if len(f.blocked) > 0 {
			t.Errorf("more than %d jobs fetch at a time", placesOf(job.Fetching, 1))
		}
	})
}

// TestOlderNodes has a node of an older version insert all jobs as those did, and work on some, beside one of this
// version.
func TestOlderNodes(t *testing.T) {
	t.Parallel()
	older := job.Classes{
		{Queue: job.Prompt, Each: 1},
		{Queue: job.Fetching, Each: 16, ByOwner: true, Kinds: []string{"track.ingest", "track.speech"}},
	}
	for _, kind := range kinds() {
		if !slices.Contains(older[1].Kinds, kind) {
			older[0].Kinds = append(older[0].Kinds, kind)
		}
	}
	older[1].Kinds = append(older[1].Kinds, "asset.ingest") // of clips in the one, of files in the other
	dbtest.Each(t, func(t *testing.T, url string) {
		f := newFleet(t, url)
		f.node(t, "old", older)
		f.ask(t, "asset.static", job.Prompt, "first", true)
		if j := got(t, f.blocked, "a download on the old node"); j.node != "old" {
			t.Fatalf("got %+v", j)
		}
		const many = 20
		for n := range many {
			f.ask(t, "asset.static", job.Prompt, strconv.Itoa(n), true)
		}
		later := job.New("asset.static", "later", args{"later", true})
		later.Queue, later.At = job.Prompt, time.Now().Add(time.Hour)
		must(t, f.db.Enqueue(t.Context(), later))
		for _, kind := range []string{"asset.finish", "asset.ingest", "media.purge", "upload.expire", "asset.finish"} {
			f.ask(t, kind, job.Prompt, "behind downloads, "+strconv.Itoa(len(kind)), false)
		}
		f.node(t, "new", nil)
		for range 4 { // of two jobs of one kind and key there is one
			if j := got(t, f.begun, "what stands behind downloads"); j.node != "new" {
				t.Errorf("the old node has begun %+v", j)
			}
		}
		for range placesOf(job.Background, 1) {
			if j := got(t, f.blocked, "a download on the new node"); j.node != "new" || j.kind != "asset.static" {
				t.Errorf("got %+v", j)
			}
		}
		for n := range 40 {
			f.ask(t, "track.speech", job.Fetching, strconv.Itoa(n), true)
			f.ask(t, "track.ingest", job.Fetching, strconv.Itoa(n), false)
		}
		for range 40 {
			if j := got(t, f.begun, "tracks behind speech"); j.kind != "track.ingest" {
				t.Errorf("got %+v", j)
			}
		}
		ended(t, f.db, "media.purge", "behind downloads, 11")
		if n, err := f.db.Unfinished(t.Context(), "asset.static", "later"); n != 1 || err != nil {
			t.Errorf("%d jobs are to come in an hour (%v), want 1", n, err)
		}
	})
}

// TestPromisesOfEachQueue has a job of each queue reach its deadline and be tried again.
func TestPromisesOfEachQueue(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		handlers, attempts := everyKind(nil), make(chan job.Job, 100)
		for i := range handlers {
			handlers[i].Timeout = 300 * time.Millisecond
			handlers[i].Work = func(ctx context.Context, j job.Job) error {
				attempts <- j
				if j.Attempt == 1 {
					<-ctx.Done()
					if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
						t.Errorf("%s ends of %v, want its deadline", j.Kind, cause)
					}
					return ctx.Err()
				}
				return nil
			}
		}
		run(t, d, "n", nil, handlers...)
		for _, kind := range testKinds() {
			must(t, d.Enqueue(t.Context(), newJob(kind, "a")))
		}
		for range 2 * len(handlers) {
			got(t, attempts, "an attempt")
		}
		for _, kind := range testKinds() {
			ended(t, d, kind, "a")
		}
		if len(attempts) > 0 {
			t.Error("there are more than two attempts")
		}
	})
}
