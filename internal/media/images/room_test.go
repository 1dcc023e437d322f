package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"iter"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
)

// TestRoom: places and bytes are shared, the next one in is of the address with fewest inside, and who has most makes way.
func TestRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(2, 100, 4)
		var mu sync.Mutex
		var order []string
		guests := map[string]*guest{}
		ask := func(from string, bytes int64) {
			go func() {
				g, err := r.enter(t.Context(), from, bytes)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					if fault.KindOf(err) != fault.Unavailable {
						t.Error(err)
					}
					order = append(order, from+" goes")
					return
				}
				order = append(order, from)
				guests[fmt.Sprintf("%s%d", from, len(order))] = g
			}()
			synctest.Wait()
		}
		want := func(said string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if got := strings.Join(order, ", "); got != said {
				t.Errorf("%s, want %s", got, said)
			}
		}
		for range 6 {
			ask("a", 10)
		}
		want("a, a") // four wait
		ask("a", 10)
		want("a, a, a goes") // it has as many as anybody
		ask("b", 60)
		want("a, a, a goes, a goes") // one of theirs makes way
		guests["a1"].leave()
		want("a, a, a goes, a goes, b")
		ask("c", 60)
		guests["a2"].leave()
		want("a, a, a goes, a goes, b, a") // it came before c, and has nothing inside
		guests["b5"].made(5)               // what is left of it is to be kept
		want("a, a, a goes, a goes, b, a, c")
		guests["b5"].leave()
		guests["a6"].leave()
		want("a, a, a goes, a goes, b, a, c, a")
		ask("d", 95)
		guests["c7"].leave()
		want("a, a, a goes, a goes, b, a, c, a") // d is next and does not fit yet, and nobody passes it
		guests["a8"].leave()
		want("a, a, a goes, a goes, b, a, c, a, a")
		guests["a9"].leave()
		want("a, a, a goes, a goes, b, a, c, a, a, d")
		guests["d10"].leave()
		ctx, cancel := context.WithCancel(t.Context())
		hold, err := r.enter(ctx, "a", 1000) // as much as there is
		if err != nil || r.bytes != 0 {
			t.Fatalf("%v, %d bytes are free", err, r.bytes)
		}
		go func() {
			_, err := r.enter(ctx, "b", 1)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("who gives up is told %v", err)
			}
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		hold.leave()
		if r.bytes != 100 || r.places != 2 || len(r.inside) != 0 || len(r.waiting) != 0 {
			t.Errorf("in the end: %+v", r)
		}
	})
}

// blank has one picture in each segment, which nothing decodes.
type blank struct{}

func (blank) Init(context.Context, int) ([]byte, error) { return []byte("init"), nil }

func (blank) Segment(context.Context, int64) (io.ReadCloser, error) {
	data := cmaf.AppendFragment(nil, 1, cmaf.TrackID, 0, []cmaf.Sample{{Duration: 1, Sync: true, Data: []byte("picture")}})
	return io.NopCloser(bytes.NewReader(data)), nil
}

// large decodes everything to black pictures of 3840 x 2160, and knows the most memory that was in use.
type large struct {
	mu   sync.Mutex
	peak uint64
}

func (l *large) Do(_ context.Context, job encode.ImageJob) error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l.mu.Lock()
	l.peak = max(l.peak, m.HeapAlloc)
	l.mu.Unlock()
	head := "P7\nWIDTH 3840\nHEIGHT 2160\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n"
	return job.Output(io.MultiReader(strings.NewReader(head), io.LimitReader(zeros{}, 3840*2160*4)))
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// fat gives animations of five megabytes, and counts them.
type fat struct{ made atomic.Int32 }

func (*fat) Tiles(context.Context, encode.TilesArgs, encode.ImageJob) error {
	return errors.New("no tiles")
}

func (f *fat) Animation(_ context.Context, _ encode.AnimationArgs, job encode.ImageJob) error {
	f.made.Add(1)
	return job.Output(io.LimitReader(zeros{}, 5<<20))
}

// memoryStore keeps objects.
type memoryStore struct {
	mu sync.Mutex
	m  map[string][]byte
}

func (s *memoryStore) PutNew(_ context.Context, key string, data []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.m[key]
	s.m[key] = data
	return !there, nil
}

func (s *memoryStore) Read(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m[key], nil
}

func (s *memoryStore) List(context.Context, string) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

func (s *memoryStore) Delete(context.Context, ...string) error { return nil }

// crowded is a Maker whose pictures are large.
func crowded(t *testing.T, pictures Spares, encoder Encoder) (*Maker, *memoryStore) {
	t.Helper()
	kept := &memoryStore{m: map[string][]byte{}}
	m := New(Options{
		Encoder: encoder, Pictures: pictures, Budget: encode.NewBudget(encode.BudgetOptions{Cores: 2}), Store: kept, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Run(ctx) // ends with ctx
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return m, kept
}

// TestFloodOfLargePictures: whoever asks for many large pictures at once gets them one after the other, in a bounded memory, and who asks for a
// single one does not wait for theirs.
func TestFloodOfLargePictures(t *testing.T) { //nolint:paralleltest // it looks at the memory of the process
	source := &large{}
	m, _ := crowded(t, source, &fat{})
	f := bare(t)
	f.Source = blank{}
	ask := func(from, query string) error {
		r, err := Parse("thumbnail.png", query)
		if err != nil {
			return err
		}
		p, err := f.Plan(r)
		if err != nil {
			return err
		}
		p.From = from
		_, err = m.Make(t.Context(), f, p)
		return err
	}
	const flood = 16
	var theirs atomic.Int32
	first := make(chan struct{})
	var all sync.WaitGroup
	for i := range flood {
		all.Go(func() {
			err := ask("192.0.2.1", fmt.Sprintf("width=3840&height=3840&fit_mode=pad&time=%g", float64(i)/10))
			if err != nil && !errors.Is(err, context.DeadlineExceeded) { // a busy machine does not get to all of them in time
				t.Error(err)
			}
			if theirs.Add(1) == 1 {
				close(first)
			}
		})
	}
	all.Go(func() {
		<-first
		if err := ask("192.0.2.2", "time=7"); err != nil {
			t.Error(err)
		}
		if n := theirs.Load(); n > flood/2 {
			t.Errorf("a single picture had to wait for %d others", n)
		}
	})
	all.Wait()
	if peak := source.peak >> 20; peak > 400 {
		t.Errorf("%d MiB were in use", peak)
	}
}

// TestLargeAnimationIsKept: it is made once, and read from the store.
func TestLargeAnimationIsKept(t *testing.T) {
	t.Parallel()
	encoder := &fat{}
	m, kept := crowded(t, small4{}, encoder)
	f := bare(t)
	f.Source = blank{}
	r, err := Parse("animated.gif", "width=640")
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Plan(r)
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.Make(t.Context(), f, p)
	if err != nil || data != nil {
		t.Fatalf("%d bytes in memory, %v", len(data), err)
	}
	if n := len(kept.m[f.Prefix+"/"+p.Name]); n != 5<<20 {
		t.Errorf("%d bytes are kept", n)
	}
}

// small4 decodes everything to a picture of 4 x 4.
type small4 struct{}

func (small4) Do(_ context.Context, job encode.ImageJob) error {
	var b bytes.Buffer
	if err := writePAM(&b, image.NewRGBA(image.Rect(0, 0, 4, 4))); err != nil {
		return err
	}
	return job.Output(&b)
}
