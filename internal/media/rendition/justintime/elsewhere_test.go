package justintime_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/claim"
	"millrace/internal/claim/claimtest"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/encode"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/rendition/ladder"
)

// fleet are nodes with one storage and one database.
type fleet struct {
	t      *testing.T
	src    source
	claims *claimtest.Memory
	took   time.Duration // of storage, for each question

	mu      sync.Mutex
	m       map[string][]byte
	encoded map[string]int // by storage key: how often a segment was made
	lost    int            // that were made in vain
}

func (f *fleet) Has(_ context.Context, key string) (bool, error) {
	time.Sleep(f.took)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.m[key] != nil, nil
}

func (f *fleet) PutNew(_ context.Context, key string, data []byte) (bool, error) {
	time.Sleep(f.took)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.encoded[key]++
	if f.m[key] != nil {
		f.lost++
		return false, nil
	}
	f.m[key] = data
	return true, nil
}

func (f *fleet) Read(context.Context, string) ([]byte, error) {
	return nil, fault.New(fault.NotFound, "no such object")
}

func (f *fleet) made() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprint(f.encoded)
}

// times is how often a segment was made, wasted how many were made in vain. Others may be at work meanwhile.
func (f *fleet) times(key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.encoded[key]
}

func (f *fleet) wasted() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// passing is an encoder that gives back what it gets, at so much of real time.
type passing struct {
	took time.Duration // for a segment
	room chan struct{} // how many may run at once

	mu     sync.Mutex
	broken bool // it makes nothing any more, for ever
	hurry  int  // runs that were told that somebody waits
	runs   int
}

func (p *passing) Rung(ctx context.Context, _ encode.Priority, job encode.RungJob) error {
	select {
	case p.room <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.room }()
	parts, err := job.Prepare(ctx, 1)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.runs++
	broken := p.broken
	p.mu.Unlock()
	for range max(len(parts[0].Keys), 1) {
		select {
		case <-time.After(p.took):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		select {
		case <-job.Hurry:
			p.mu.Lock()
			p.hurry++
			p.mu.Unlock()
		default:
		}
	}
	if broken {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	r, w := io.Pipe()
	defer func() { _ = r.Close() }() // always nil
	go func() { w.CloseWithError(job.Input(ctx, 0, w)) }()
	return job.Output(ctx, 0, r)
}

// member is one node.
type member struct {
	*justintime.Maker
	encoder *passing
	way     *claimtest.Way
	w       *justintime.Work
}

func (f *fleet) join(name string) *member {
	f.t.Helper()
	x := &member{
		encoder: &passing{took: time.Second, room: make(chan struct{}, 2)}, way: &claimtest.Way{Memory: f.claims},
	}
	claimer := claim.New(claim.Options{
		Store: x.way, Node: id.Node(name), Run: "1", Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	x.Maker = justintime.New(justintime.Options{
		Encoder: x.encoder, Store: f, Claims: claimer, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	r := ladder.Instead(ladder.Source{Width: 320, Height: 180, FrameRate: 30}, ladder.Plus, 1080)[0]
	x.w = &justintime.Work{Prefix: "rung", Rung: r, Timeline: f.src.timeline, Video: f.src.video, Source: f.src}
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	var all sync.WaitGroup
	claimerEnds, end := context.WithCancel(context.WithoutCancel(f.t.Context()))
	all.Go(func() {
		_ = x.Run(ctx) // ends with ctx
		end()
	})
	all.Go(func() { _ = claimer.Run(claimerEnds) }) // likewise
	f.t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	return x
}

// fleets runs a test with nodes whose time is the test's.
func fleets(t *testing.T, test func(t *testing.T, f *fleet)) {
	t.Helper()
	src := open(t,
		append([]string{"-f", "lavfi", "-i", "testsrc2=s=160x90:r=10:d=48"},
			x264("-g", "40", "-keyint_min", "40", "-sc_threshold", "0", "-bf", "0")...)...)
	synctest.Test(t, func(t *testing.T) {
		test(t, &fleet{
			t: t, src: src, claims: claimtest.NewMemory(), took: 10 * time.Millisecond, m: map[string][]byte{},
			encoded: map[string]int{},
		})
	})
}

// each asks every node for every segment at once, and gives how long the last one took.
func (f *fleet) each(nodes []*member, msns ...int64) time.Duration {
	f.t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for _, x := range nodes {
		for _, msn := range msns {
			all.Go(func() {
				if err := x.Segment(f.t.Context(), x.w, msn); err != nil {
					f.t.Errorf("segment %d: %v", msn, err)
				}
			})
		}
	}
	all.Wait()
	return time.Since(began)
}

// Nodes that are asked for the same at once make each segment once, between them, and share the work.
func TestOneNodeMakesIt(t *testing.T) {
	t.Parallel()
	fleets(t, func(t *testing.T, f *fleet) {
		nodes := []*member{f.join("a"), f.join("b"), f.join("c")}
		took := f.each(nodes, 0, 1, 2, 3)
		if got := f.made(); got != "map[rung/0.m4s:1 rung/1.m4s:1 rung/2.m4s:1 rung/3.m4s:1]" {
			t.Errorf("made %s", got)
		}
		if took > 2*time.Second {
			t.Errorf("took %s", took)
		}
		synctest.Wait()
		if left := f.claims.Claimed(); len(left) > 0 {
			t.Errorf("still claimed: %v", left)
		}
		taken := f.claims.Taken
		f.each(nodes, 0, 1, 2, 3)
		if f.claims.Taken != taken {
			t.Error("what is stored is claimed")
		}
	})
}

// Nodes that are watched at the same place do not run ahead over the same segments.
func TestOneNodeRunsAhead(t *testing.T) {
	t.Parallel()
	fleets(t, func(t *testing.T, f *fleet) {
		nodes := []*member{f.join("a"), f.join("b")}
		for msn := range int64(8) {
			f.each(nodes, msn)
			for _, x := range nodes {
				x.Ahead(t.Context(), x.w, msn)
			}
			time.Sleep(2 * time.Second)
		}
		if n := f.wasted(); n > 0 {
			t.Errorf("%d made in vain: %s", n, f.made())
		}
		if f.times(nodes[0].w.SegmentKey(10)) != 1 {
			t.Errorf("nobody ran ahead: %s", f.made())
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for key, n := range f.encoded {
			if n != 1 {
				t.Errorf("%s was made %d times", key, n)
			}
		}
	})
}

// What a node makes ahead it makes with the fast preset once a viewer of another node waits for it; who waits has it
// when it is stored.
func TestAheadForAnotherNode(t *testing.T) {
	t.Parallel()
	fleets(t, func(t *testing.T, f *fleet) {
		a, b := f.join("a"), f.join("b")
		a.encoder.took = 3 * time.Second
		a.Ahead(t.Context(), a.w, 0)
		time.Sleep(time.Second)
		took := f.each([]*member{b}, 1)
		if took > 20*time.Second || f.wasted() > 0 {
			t.Errorf("after %s, %d in vain", took, f.wasted())
		}
		a.encoder.mu.Lock()
		defer a.encoder.mu.Unlock()
		if a.encoder.hurry == 0 {
			t.Error("it does not know that somebody waits")
		}
	})
}

// A node that dies, and one that never gets ready, delay the viewers of others by seconds.
func TestNodeThatMakesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		trouble func(*member)
		most    time.Duration
	}{
		"dead":          {func(a *member) { a.way.Be(claimtest.Silent) }, 6 * time.Second},
		"alive":         {func(*member) {}, 12 * time.Second},
		"database away": {func(a *member) { a.way.Be(claimtest.Broken) }, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fleets(t, func(t *testing.T, f *fleet) {
				a, b := f.join("a"), f.join("b")
				a.encoder.broken = true
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { _ = a.Segment(ctx, a.w, 2) }() // it never comes
				time.Sleep(5 * time.Second)
				tt.trouble(a)
				if took := f.each([]*member{b}, 2); took > tt.most {
					t.Errorf("took %s", took)
				}
				if f.times("rung/2.m4s") != 1 {
					t.Errorf("made %s", f.made())
				}
			})
		})
	}
}

// Where nodes can't ask one another each makes what it is asked for, and all have what was stored first.
func TestNodesThatCanNotAsk(t *testing.T) {
	t.Parallel()
	fleets(t, func(t *testing.T, f *fleet) {
		nodes := []*member{f.join("a"), f.join("b")}
		for _, x := range nodes {
			x.way.Be(claimtest.Broken)
		}
		if took := f.each(nodes, 0); took > 1500*time.Millisecond {
			t.Errorf("took %s", took)
		}
		if f.times("rung/0.m4s") != 2 || f.wasted() != 1 {
			t.Errorf("made %s, %d in vain", f.made(), f.wasted())
		}
	})
}

// What fills a rung waits for what another node makes, too.
func TestFillBesideAnotherNode(t *testing.T) {
	t.Parallel()
	fleets(t, func(t *testing.T, f *fleet) {
		a, b := f.join("a"), f.join("b")
		go a.Ahead(t.Context(), a.w, 0)
		time.Sleep(100 * time.Millisecond)
		for msn := range int64(6) {
			if _, err := b.Fill(t.Context(), b.w, msn); err != nil {
				t.Errorf("segment %d: %v", msn, err)
			}
		}
		if f.wasted() > 0 {
			t.Errorf("made %s", f.made())
		}
	})
}
