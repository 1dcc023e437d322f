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
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/delivered"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
)

// blank has one picture in each segment, which nothing decodes.
type blank struct{}

func (blank) Init(context.Context, int) ([]byte, error) { return []byte("init"), nil }

func (blank) Segment(context.Context, int64) (delivered.Body, error) {
	data := cmaf.AppendFragment(nil, 1, cmaf.TrackID, 0, []cmaf.Sample{
		{Duration: 1, Sync: true, Data: []byte("picture")},
	})
	return delivered.Body{Data: data}, nil
}

// large decodes everything to black pictures of 3840 x 2160, and knows the most memory that was in use.
type large struct {
	mu      sync.Mutex
	peak    uint64
	decoded int
}

func (l *large) Do(_ context.Context, job encode.ImageJob) error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l.mu.Lock()
	l.peak = max(l.peak, m.HeapAlloc)
	l.decoded++
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

func (*fat) Picture(context.Context, frame.VideoRange, encode.ImageJob) error {
	return errors.New("no picture of high dynamic range")
}

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

func (m *memoryStore) PutNew(_ context.Context, key string, data []byte) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, there := m.m[key]
	m.m[key] = data
	return !there, nil
}

func (m *memoryStore) Read(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.m[key], nil
}

func (m *memoryStore) List(context.Context, string) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

func (m *memoryStore) Delete(context.Context, ...string) error { return nil }

// crowded is a Maker whose pictures are large.
func crowded(t *testing.T, pictures Spares, encoder Encoder) (*Maker, *memoryStore) {
	t.Helper()
	kept := &memoryStore{m: map[string][]byte{}}
	m := New(Options{
		Encoder: encoder, Pictures: pictures, Budget: encode.NewBudget(encode.BudgetOptions{Cores: 2}), Store: kept,
		Now:    time.Now,
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

// TestFloodOfLargePictures: a viewer who asks for many large pictures at once gets them one after the other, in bounded
// memory, and a viewer who asks for a single one does not wait for theirs.
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
	const flood = 8
	var made atomic.Int32
	var once sync.Once
	first := make(chan struct{})
	var all sync.WaitGroup
	for i := range flood {
		all.Go(func() {
			err := context.DeadlineExceeded
			// a busy machine does not get to all of them in time: they are asked for again
			for errors.Is(err, context.DeadlineExceeded) {
				err = ask("192.0.2.1", fmt.Sprintf("width=3840&height=3840&fit_mode=pad&time=%g", float64(i)/10))
			}
			if err != nil {
				t.Error(err)
			}
			made.Add(1)
			once.Do(func() { close(first) })
		})
	}
	all.Go(func() {
		<-first
		if err := ask("192.0.2.2", "time=7"); err != nil {
			t.Error(err)
		}
		if n := made.Load(); n > flood/2 {
			t.Errorf("a single picture had to wait for %d others", n)
		}
	})
	all.Wait()
	if n := source.decoded; n < flood+1 {
		t.Errorf("%d pictures were decoded", n)
	}
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
