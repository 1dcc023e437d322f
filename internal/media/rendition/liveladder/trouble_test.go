package liveladder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/rendition/ladder"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// nothing keeps nothing, and says that it did.
type nothing struct{ window.Store }

func (nothing) Record(context.Context, []timeline.Entry) error { return nil }

// source is an edge with n whole segments of one picture each.
func source(n int) *window.Edge {
	e := window.New(window.Options{
		Media: "m", Mode: window.Mode{Low: true, Listed: 30 * time.Second, InMemory: 2}, Store: nothing{},
		Recorder: nothing{}, Logger: slog.New(slog.DiscardHandler),
	})
	e.AddInit(frame.Video, 90000, timeline.Init{Rendition: "v", Codec: "avc1.640028"}, []byte("init"))
	e.Target(2, map[string]time.Duration{"v": 2 * time.Second})
	e.Live(true)
	for i := range n {
		picture(e, i)
		e.Finish("v", 180000)
	}
	return e
}

// picture is a segment that has one.
func picture(e *window.Edge, i int) {
	at := int64(i) * 180000
	p := cmaf.Sample{Duration: 180000, Sync: true, Data: []byte("picture")}
	e.Begin("v", timeline.Mark{Start: time.Unix(1e9, 0).Add(time.Duration(i) * 2 * time.Second)}, 0, at)
	e.Sample("v", at, p)
	e.Part("v", cmaf.AppendFragment(nil, 1, cmaf.TrackID, uint64(at), []cmaf.Sample{p}), 180000, true)
}

// encoder is one that does what a test says.
type encoder struct {
	do func(ctx context.Context, in func(context.Context, io.Writer) error) error

	mu   sync.Mutex
	born int
}

func (e *encoder) Ladder(
	ctx context.Context, _ encode.LadderArgs, in func(context.Context, io.Writer) error,
	_ []func(context.Context, io.Reader) error,
) error {
	e.mu.Lock()
	e.born++
	e.mu.Unlock()
	return e.do(ctx, in)
}

func (e *encoder) births() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.born
}

// log is what was said.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *log) count(line string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), line)
}

// live is an edge that is followed and published into.
type live interface {
	Edge
	Derived() *window.Derived
}

// run makes one rung of an edge while do runs.
func run(t *testing.T, e live, enc Encoder, do func(said *log)) {
	t.Helper()
	said := &log{}
	c := New(Options{
		Edge: e, Output: e.Derived(), Source: "v", Timescale: 90000, Encoder: enc, Idle: time.Hour, Now: time.Now,
		Logger: slog.New(slog.NewTextHandler(said, nil)),
		Init:   func(context.Context, int) ([]byte, error) { return []byte("init"), nil },
		Rungs:  func() []Rung { return []Rung{{Rung: ladder.Rung{Name: "270p"}, ID: "270p"}} },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = c.Run(ctx) }) // ends with ctx
	c.Want("270p")
	synctest.Wait()
	do(said)
	cancel()
	all.Wait()
}

// TestCannotBegin has encoders that fail before they take a picture: that is said, and after three of them there is a
// rest. One for which there is no room is tried again every second, which is said once.
func TestCannotBegin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		do          func() error
		least, most int // encoders in 30 s
		said        int
	}{
		{"broken", func() error { return errors.New("no such program") }, 6, 9, 6},
		{"panics", func() error { panic("nobody thought of this") }, 6, 9, 6},
		{"no room", func() error { return fault.New(fault.Unavailable, "full") }, 20, 31, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				enc := &encoder{
					do: func(context.Context, func(context.Context, io.Writer) error) error { return tt.do() },
				}
				run(t, source(2), enc, func(said *log) {
					time.Sleep(30 * time.Second)
					if n := enc.births(); n < tt.least || n > tt.most {
						t.Errorf("%d encoders", n)
					}
					if n := said.count("level=WARN"); n < tt.said || n > tt.said+3 {
						t.Errorf("said %d times:\n%s", n, said.b.String())
					}
				})
			})
		})
	}
}

// TestNothingToEncode has a stream end while an encoder starts: it is ended without a word, as none of it is broken.
func TestNothingToEncode(t *testing.T) {
	t.Parallel()
	for name, segments := range map[string]int{"before the first picture": 0, "when all is encoded": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				edge, started := source(segments), make(chan struct{})
				enc := &encoder{do: func(ctx context.Context, in func(context.Context, io.Writer) error) error {
					<-started
					var got bytes.Buffer
					if err := in(ctx, &got); err != nil {
						return err
					}
					if got.Len() == 0 {
						return errors.New("Invalid data found when processing input")
					}
					return nil
				}}
				run(t, edge, enc, func(said *log) {
					edge.Close()
					time.Sleep(2 * time.Second)
					close(started)
					time.Sleep(time.Second)
					if enc.births() == 0 || said.count("level=WARN") != 0 {
						t.Errorf("%d encoders said:\n%s", enc.births(), said.b.String())
					}
				})
			})
		})
	}
}

// TestStored has an edge that is closed but whose last segments wait for storage: nothing is left to encode, and no
// encoder is begun.
func TestStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := source(3)
		enc := &encoder{
			do: func(ctx context.Context, in func(context.Context, io.Writer) error) error {
				return in(ctx, io.Discard)
			},
		}
		run(t, e, enc, func(*log) {
			e.Close()
			synctest.Wait()
			before := enc.births()
			time.Sleep(time.Minute)
			if n := enc.births(); n != before {
				t.Errorf("%d encoders were begun with nothing to do", n-before)
			}
		})
	})
}

// far is an edge that seems far ahead, and lets nobody follow it a third time.
type far struct {
	*window.Edge
	mu      sync.Mutex
	follows int
}

func (f *far) Newest(string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows < 2 {
		return f.Edge.Newest("v")
	}
	return 100
}

func (f *far) Follow(rendition string, msn int64) (*window.Follower, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows++; f.follows > 2 {
		return nil, window.ErrUnknown
	}
	return f.Edge.Follow(rendition, msn)
}

// TestJumpFails has an encoder that is behind and can't go on anywhere: that is its fault, and nothing else's.
func TestJumpFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var errs []error
		enc := &encoder{do: func(ctx context.Context, in func(context.Context, io.Writer) error) (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("panic: %v", p)
				}
				errs = append(errs, err)
			}()
			return in(ctx, io.Discard)
		}}
		run(t, &far{Edge: source(3)}, enc, func(*log) {
			synctest.Wait()
			if len(errs) == 0 || !errors.Is(errs[0], window.ErrUnknown) {
				t.Errorf("the input ended with %v", errs)
			}
		})
	})
}

// deaf is an edge that is only told what was kept.
type deaf struct {
	Output
	held int // bytes that are published and not stored
	kept []string
}

func (d *deaf) Held() int { return d.held }

func (d *deaf) Stored(id string, msn int64, same bool) {
	d.kept = append(d.kept, fmt.Sprintf("%s/%d %v", id, msn, same))
}

func (d *deaf) Lost(id string, msn int64) {
	d.kept = append(d.kept, fmt.Sprintf("%s/%d lost", id, msn))
}

// TestByteBudget has two broadcasts whose storage is slow share what may wait for it. While there is no room,
// nothing more is published and what was published stays. What one of them frees, the other can take.
func TestByteBudget(t *testing.T) {
	t.Parallel()
	budget := NewByteBudget(100)
	edges := [2]*deaf{{}, {}}
	var uploaders [2]*uploader
	for i, e := range edges {
		uploaders[i] = newUploader(Options{Output: e, Waiting: budget, Logger: slog.New(slog.DiscardHandler)})
	}
	publish := func(i, bytes int) bool {
		ok := uploaders[i].room(bytes)
		if ok {
			edges[i].held += bytes
		}
		return ok
	}
	if !publish(0, 50) || !publish(0, 30) || publish(1, 30) || !publish(1, 20) || publish(0, 1) {
		t.Fatalf("published: %d and %d bytes of 100", edges[0].held, edges[1].held)
	}
	r := Rung{ID: "270p"}
	uploaders[0].put(made{rung: r, msn: 1, data: make([]byte, 80)})
	uploaders[0].opt.Store = failing{}
	uploaders[0].opt.Output = &letsGo{deaf: edges[0], then: func() { edges[0].held, uploaders[0].closed = 0, true }}
	uploaders[0].run(t.Context())
	if fmt.Sprint(edges[0].kept) != "[270p/1 lost]" || !publish(1, 80) || publish(1, 1) {
		t.Errorf("%v, then there are %d bytes of the other", edges[0].kept, edges[1].held)
	}
	uploaders[0].put(made{rung: r, msn: 2, data: make([]byte, 80)}) // of an encoder that was still being stopped
	if len(edges[0].kept) != 1 || publish(0, 0) {
		t.Errorf("after the end: %v", edges[0].kept)
	}
	uploaders[1].drop()
	if publish(1, 0) || !budget.take(100) || budget.take(1) {
		t.Error("room was not given back")
	}
	large := newUploader(Options{Output: &deaf{held: maxKept - 10}})
	if !large.room(10) || large.room(11) {
		t.Error("a broadcast has more, or less, than what one may have")
	}
}

// letsGo is an edge that does something when a segment is lost.
type letsGo struct {
	*deaf

	then func()
}

func (l *letsGo) Lost(id string, msn int64) {
	l.deaf.Lost(id, msn)
	l.then()
}

type failing struct{}

func (failing) Keep(context.Context, string, []byte) (bool, error) { panic("broken") }

// memory is a store that remembers what it was given, once it may.
type memory struct {
	mu   sync.Mutex
	all  []string
	fail int // how often it fails first
}

func (m *memory) Keep(_ context.Context, key string, data []byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail--; m.fail >= 0 {
		return false, errors.New("away")
	}
	m.all = append(m.all, fmt.Sprintf("%s=%s", key, data))
	return true, nil
}

func (m *memory) has() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint(m.all)
}

// TestHeadsAreKept has a part published of a segment that nobody goes on with: it is kept for anyone who makes the
// rest, once the source's segment is stored and can't be another's, and however often storage fails. What may never be
// kept is not.
func TestHeadsAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s := source(1), &memory{fail: 3}
		if err := e.Derived().Add("270p", "v"); err != nil {
			t.Fatal(err)
		}
		await := map[int64]chan error{1: make(chan error), 2: make(chan error)}
		keyed := func(name string) func(int64) string {
			return func(msn int64) string { return fmt.Sprintf("%d.%s", msn, name) }
		}
		c := New(Options{
			Edge: e, Output: e.Derived(), Source: "v", Timescale: 90000, Idle: time.Hour, Now: time.Now,
			Logger: slog.New(slog.DiscardHandler), Store: s,
			Encoder: &encoder{do: func(ctx context.Context, _ func(context.Context, io.Writer) error) error {
				<-ctx.Done()
				return context.Cause(ctx)
			}},
			Init: func(context.Context, int) ([]byte, error) { return []byte("init"), nil },
			Rungs: func() []Rung {
				return []Rung{{Rung: ladder.Rung{Name: "270p"}, ID: "270p", Key: keyed("m4s"), HeadKey: keyed("head")}}
			},
			AwaitStored: func(_ context.Context, msn int64) error { return <-await[msn] },
		})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = c.Run(ctx) }) // ends with ctx
		c.Want("270p")
		synctest.Wait()
		for msn := int64(1); msn < 3; msn++ {
			picture(e, int(msn))
			if !e.Derived().AppendPart("270p", msn, 0, []byte("head"), 180000, true) {
				t.Fatal("the part is not taken")
			}
			e.Derived().Skip("270p", msn+1)
			e.Finish("v", 180000)
		}
		time.Sleep(time.Second)
		if got := s.has(); got != "[]" {
			t.Errorf("kept before its source is: %s", got)
		}
		for range 4 {
			await[1] <- nil
		}
		await[2] <- fault.New(fault.Conflict, "another node has it")
		synctest.Wait()
		if got := s.has(); got != "[1.head=head]" {
			t.Errorf("kept: %s", got)
		}
		if e.Derived().Head("270p", 1) != nil {
			t.Error("the edge keeps what is stored")
		}
		cancel()
		all.Wait()
	})
}
