package window

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/hls"
	"millrace/internal/media/timeline"
)

var errAway = errors.New("storage is away")

// inMemory is how many bytes of media the edge keeps alive.
func (e *Edge) inMemory() (bytes, segments int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.renditions {
		for i := range l.segs {
			if h := l.segs[i].hot; h != nil && h.buf != nil {
				bytes += len(h.buf)
				segments++
			}
		}
	}
	return bytes, segments
}

func TestMemoryIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Options{Mode: low})
		defer r.run(t)()
		r.start()
		var offered []listedPart
		for i := range 40 {
			r.segment(7, false)
			synctest.Wait()
			if i == 25 {
				l := r.list(t, "v", now())
				offered = l.segs[len(l.segs)-2].parts
			}
		}
		r.begin("v", false)
		r.part("v")
		if bytes, n := r.inMemory(); n != 2*2+1 || bytes != 4*700+100 {
			t.Errorf("%d bytes of %d segments in memory", bytes, n)
		}
		// What is listed but not in memory is said to be in storage, parts by their place.
		l := r.list(t, "v", now())
		old := l.segs[len(l.segs)-3]
		for k := range 7 { // not listed any more
			old.parts = append(old.parts, listedPart{uri: hls.PartURI("v", old.msn-1, 7+k)})
			if k > 0 {
				old.parts[k].uri = hls.PartURI("v", old.msn, k)
			}
		}
		whole, err := r.ReadSegment(t.Context(), "v", old.msn)
		if err != nil || whole.Data != nil || whole.Object != fmt.Sprintf("media/m/v/%d.m4s", old.msn) ||
			whole.N != 700 {
			t.Errorf("%+v, %v", whole, err)
		}
		// by the newest playlist, and by one that is as old as playlists are long
		for _, listed := range [][]listedPart{old.parts, offered} {
			for k, p := range listed {
				msn, part := named(t, p.uri)
				got, err := r.ReadPart(t.Context(), "v", msn, part)
				if err != nil || got.Offset != int64(100*k) || got.N != 100 || got.Object == "" {
					t.Errorf("%s is at %+v, %v", p.uri, got, err)
				}
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, l := range r.renditions {
			if n := len(l.segs) - l.cold; n > 22 {
				t.Errorf("%d segments are still warm", n)
			}
		}
	})
}

// TestStorageThatFails: it is tried again, nothing is lost, the order stays.
func TestStorageThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Options{Mode: low})
		calls := 0
		r.store.before = func(context.Context, string) error {
			if calls++; calls%3 != 0 {
				return errAway
			}
			return nil
		}
		defer r.run(t)()
		r.start()
		for range 10 {
			r.segment(2, false)
		}
		began := time.Now()
		for len(r.store.timeline(t).Marks) < 10 {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		want := []string{"media/m/v/init-0.mp4", "media/m/v/7.m4s", "media/m/a/init-0.mp4", "media/m/a/7.m4s", "row 7"}
		for n := 8; n < 17; n++ {
			want = append(want, fmt.Sprintf("media/m/v/%d.m4s", n), fmt.Sprintf("media/m/a/%d.m4s", n),
				fmt.Sprintf("row %d", n))
		}
		if !slices.Equal(r.store.order, want) {
			t.Errorf("stored in the order\n%v\nwant\n%v", r.store.order, want)
		}
	})
}

// TestStorageThatHangs: the stream and its viewers go on; below the cap nothing is lost.
func TestStorageThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Options{Mode: low, MaxHeld: 20 * 1400})
		back := r.store.hang()
		defer r.run(t)()
		r.start()
		for range 20 {
			r.segment(7, false)
		}
		if _, n := r.inMemory(); n != 40 {
			t.Errorf("%d segments in memory", n)
		}
		if l := r.list(t, "v", now()); len(l.segs) != 15 || strings.Contains(l.text, "GAP") {
			t.Errorf("got\n%s", l.text)
		}
		if p, err := r.ReadSegment(t.Context(), "v", 7); err != nil || len(p.Data) != 700 {
			t.Errorf("%+v, %v", p, err)
		}
		close(back)
		synctest.Wait()
		tl := r.store.timeline(t)
		if len(tl.Marks) != 20 || len(r.store.objects) != 42 {
			t.Errorf("%d rows, %d objects", len(tl.Marks), len(r.store.objects))
		}
		if _, n := r.inMemory(); n != 4 {
			t.Errorf("%d segments in memory", n)
		}
	})
}

// TestSegmentsAreLostAboveTheCap: memory is bounded; what is lost is a gap in the record and, once memory lets go of
// it, in the playlists.
func TestSegmentsAreLostAboveTheCap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Options{Mode: low, MaxHeld: 5 * 1400})
		back := r.store.hang()
		defer r.run(t)()
		r.start()
		for n := range 15 {
			r.segment(7, false)
			l := r.list(t, "v", now())
			for i, s := range l.segs {
				lost := s.msn >= 12 && i < len(l.segs)-2
				if s.msn >= 7 && s.gap != lost {
					t.Fatalf("after %d: segment %d, gap %v, lost %v", n, s.msn, s.gap, lost)
				}
				if s.gap && len(s.parts) > 0 {
					t.Fatalf("parts of a gap are listed:\n%s", l.text)
				}
				if s.msn >= 7 && !s.gap {
					if p, err := r.ReadSegment(t.Context(), "v", s.msn); err != nil || len(p.Data) != 700 {
						t.Fatalf("segment %d: %v", s.msn, err)
					}
				}
			}
			event := r.list(t, "v", Reload{MSN: -1, Part: -1, Event: true})
			for _, s := range event.segs {
				if s.gap != (s.msn >= 12 && s.msn < event.segs[len(event.segs)-2].msn) {
					t.Fatalf("after %d: segment %d, gap %v", n, s.msn, s.gap)
				}
			}
		}
		if _, n := r.inMemory(); n != 2*(5+2) {
			t.Errorf("%d segments in memory", n)
		}
		close(back)
		synctest.Wait()
		for range 5 {
			r.segment(7, false)
			synctest.Wait()
		}
		tl := r.store.timeline(t)
		if len(tl.Marks) != 20 {
			t.Fatalf("%d rows", len(tl.Marks))
		}
		for i, c := range tl.Rendition("v").Chunks {
			lost := i >= 5 && i < 15
			if c.Gap != lost || lost != (c.Object == "") || c.Duration != 7*partTicks {
				t.Errorf("row %d: %+v", i, c)
			}
			if _, stored := r.store.objects[c.Object]; c.Object != "" && !stored {
				t.Errorf("row %d names %s, which is not there", i, c.Object)
			}
		}
		// Resumed from the record, the same is listed.
		two := newRig(Options{Mode: low, Timeline: tl})
		whole := Reload{MSN: -1, Part: -1, Event: true}
		r.Live(false)
		one, again := r.list(t, "v", whole), two.list(t, "v", whole)
		for i := range one.segs {
			one.segs[i].parts, again.segs[i].parts = nil, nil
			if fmt.Sprint(one.segs[i]) != fmt.Sprint(again.segs[i]) {
				t.Errorf("listed as %+v, resumed as %+v", one.segs[i], again.segs[i])
			}
		}
	})
}

func TestRunStoresEverythingBeforeItEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Options{Mode: low})
		r.start()
		for range 5 {
			r.segment(2, false)
		}
		r.begin("v", false)
		r.begin("a", false)
		r.part("v")
		r.part("a")
		r.Close()
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if tl := r.store.timeline(t); len(tl.Marks) != 6 || tl.Target != 2 {
			t.Errorf("%d rows, target %d", len(tl.Marks), tl.Target)
		}
		if err := r.Run(t.Context()); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("shut down")
		for _, away := range []bool{false, true} {
			r := newRig(Options{Mode: low})
			if away {
				r.store.before = func(context.Context, string) error { return errAway }
			}
			r.start()
			r.segment(2, false)
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error)
			go func() { done <- r.Run(ctx) }()
			synctest.Wait()
			cancel(cause)
			if err := <-done; !errors.Is(err, cause) {
				t.Errorf("storage away %v: %v", away, err)
			}
		}
	})
}

// TestRecordComesBeforeWhatNeedsIt: a rendition and its init segments are declared in the row that uses them first, and
// not again.
func TestRecordComesBeforeWhatNeedsIt(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.announce("v")
	r.Live(true)
	r.segment(2, false, "v")
	r.segment(2, false, "v")
	r.announce("v", "a") // the audio joins late
	r.segment(2, false)
	if n := r.AddInit(0, 90000, timeline.Init{Rendition: "v", Codec: "other"}, []byte("other")); n != 1 {
		t.Errorf("init number %d", n)
	}
	r.Begin("v", timeline.Mark{Start: r.wall, Discontinuity: true}, 1, int64(r.at*90000))
	r.begin("a", true)
	r.part("v")
	r.part("a")
	r.finish(1, "v", "a")
	r.Close()
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range r.store.entries {
		switch {
		case e.Target > 0:
			kinds = append(kinds, "target")
		case e.Rendition != nil:
			kinds = append(kinds, "rendition "+e.Rendition.ID)
			if e.Rendition.PartTarget != 300000 {
				t.Errorf("%+v", e.Rendition)
			}
		case e.Init != nil:
			kinds = append(kinds, "init "+e.Init.Object)
		case e.Segment != nil:
			kinds = append(kinds, fmt.Sprint("segment ", e.Segment.MSN, len(e.Segment.Chunks)))
		}
	}
	want := []string{
		"target", "rendition v", "init media/m/v/init-0.mp4", "segment 7 1", "segment 8 1", "rendition a",
		"init media/m/a/init-0.mp4", "segment 9 2",
		"init media/m/v/init-1.mp4", "segment 10 2",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("recorded %q, want %q", kinds, want)
	}
	a := r.list(t, "a", Reload{MSN: -1, Part: -1, Event: true})
	if !a.segs[0].gap || !a.segs[1].gap || a.segs[2].gap || a.segs[0].dur != 0.6 ||
		strings.Count(a.text, "EXT-X-MAP") != 1 {
		t.Errorf("got\n%s", a.text)
	}
	v := r.list(t, "v", Reload{MSN: -1, Part: -1, Event: true})
	if strings.Count(v.text, "EXT-X-MAP") != 2 || v.segs[3].init != "v/init-1.mp4" {
		t.Errorf("got\n%s", v.text)
	}
}

func TestReadersAndWriter(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.segment(7, false)
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	var parts atomic.Int64
	for n := range 16 {
		id := []string{"v", "a"}[n%2]
		readers.Go(func() {
			for ctx.Err() == nil {
				b, err := r.Playlist(ctx, id, Reload{MSN: -1, Part: -1, Event: n%3 == 0, Skip: n%4 == 0}, n%5 == 0)
				if err != nil {
					continue
				}
				if n%5 == 0 {
					continue
				}
				l := parse(t, string(b))
				msn, part := l.next()
				if _, err := r.Playlist(ctx, id, ask(msn, part), false); err != nil && !errors.Is(err, ErrTooFar) &&
					ctx.Err() == nil {
					t.Errorf("ask for %d.%d: %v", msn, part, err)
				}
				if l.hint != "" {
					m, k := named(t, l.hint)
					if p, err := r.ReadPart(ctx, id, m, k); err == nil &&
						(p.Object != "" || strings.HasPrefix(string(p.Data), "<"+id)) {
						parts.Add(1)
					} else if last, _ := r.list(t, id, now()).next(); ctx.Err() == nil && last < m+5 {
						// else the writer has run away
						t.Errorf("hint %s: %+v %v", l.hint, p, err)
					}
				}
				_, _ = r.Describe()
			}
		})
	}
	stop := r.run(t)
	for range 40 {
		r.segment(7, false)
		r.Standing()
		runtime.Gosched()
	}
	for parts.Load() < 20 {
		r.segment(1, false)
	}
	cancel()
	readers.Wait()
	stop()
}

// TestNothingIsRenderedWithoutViewers: publications cost no text, and a part no allocation beyond what it is.
func TestNothingIsRenderedWithoutViewers(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the whole process
	r := newRig(Options{Mode: low})
	r.start()
	buf := make([]byte, 0, 1<<20)
	r.begin("v", false)
	for range 8 { // the list of parts has its room
		r.Part("v", buf[:len(buf)+10], 1, false)
	}
	r.rendition("v").open().hot.parts = slices.Grow(r.rendition("v").open().hot.parts, 2000)
	if n := testing.AllocsPerRun(1000, func() { r.Part("v", buf[:1000], 1, false) }); n != 0 {
		t.Errorf("%v allocations a part", n)
	}
	for _, l := range r.renditions {
		if len(l.text) != 0 {
			t.Error("a playlist was rendered")
		}
	}
}

func BenchmarkPart(b *testing.B) {
	r := newRig(Options{Mode: low})
	r.announce("v")
	r.Live(true)
	b.ReportAllocs()
	for b.Loop() {
		r.Begin("v", timeline.Mark{Start: noon}, 0, 0)
		for range 7 {
			r.Part("v", nil, 27000, false)
		}
		r.Finish("v", 0)
		r.stored(&r.queue[0])
	}
}

// BenchmarkPublication is a part with a viewer of each rendition waiting for it, twelve hours into a broadcast.
func BenchmarkPublication(b *testing.B) {
	r := newRig(Options{Mode: low})
	r.start()
	for range 21600 {
		r.segment(7, false)
	}
	r.mu.Lock()
	r.queue = nil
	r.mu.Unlock()
	for _, event := range []bool{false, true} {
		b.Run(fmt.Sprintf("event=%v", event), func(b *testing.B) {
			b.ReportAllocs()
			r.begin("v", false)
			for b.Loop() {
				r.Part("v", nil, 1, false)
				if len(r.rendition("v").open().hot.parts) > 6 {
					r.Finish("v", 189000)
					r.begin("v", false)
				}
				if _, err := r.Playlist(b.Context(), "v", Reload{
					MSN: -1, Part: -1, Event: event, Skip: true,
				}, false); err != nil {
					b.Fatal(err)
				}
			}
			r.Finish("v", 0)
		})
	}
}
