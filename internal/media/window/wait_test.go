package window

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// result is what a request that may wait came back with, and when.
type result struct {
	text  string
	place Location
	err   error
	after time.Duration
}

func later(f func() (string, Location, error)) <-chan result {
	out := make(chan result, 1)
	began := time.Now()
	go func() {
		text, p, err := f()
		out <- result{text, p, err, time.Since(began)}
	}()
	synctest.Wait()
	return out
}

func (r *rig) reload(ctx context.Context, id string, q Reload) <-chan result {
	return later(func() (string, Location, error) {
		b, err := r.Playlist(ctx, id, q, false)
		return string(b), Location{}, err
	})
}

func (r *rig) fetch(ctx context.Context, id string, msn int64, part int) <-chan result {
	return later(func() (string, Location, error) {
		p, err := r.ReadPart(ctx, id, msn, part)
		return "", p, err
	})
}

func waits(t *testing.T, c <-chan result) {
	t.Helper()
	synctest.Wait()
	select {
	case a := <-c:
		t.Fatalf("a response already: %v %s", a.err, a.text)
	default:
	}
}

func (r result) parsed(t *testing.T) list {
	t.Helper()
	if r.err != nil {
		t.Fatal(r.err)
	}
	return parse(t, r.text)
}

func TestBlockingReload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Options{Mode: low})
		r.start()
		r.segment(7, false)
		r.begin("v", false)
		r.part("v")
		l := r.list(t, "v", now())
		msn, part := l.next()
		if msn != 8 || part != 1 {
			t.Fatalf("next is %d.%d in\n%s", msn, part, l.text)
		}
		c := r.reload(t.Context(), "v", ask(8, 1))
		whole := r.reload(t.Context(), "v", ask(8, -1))
		beyond := r.reload(t.Context(), "v", ask(8, 7))
		next := r.reload(t.Context(), "v", ask(9, 0))
		waits(t, c)
		r.part("v")
		if got := (<-c).parsed(t); len(got.open) != 2 {
			t.Errorf("asked for 8.1, got\n%s", got.text)
		}
		waits(t, whole)
		for range 5 {
			r.part("v")
		}
		waits(t, whole)
		r.finish(7, "v")
		if got := (<-whole).parsed(t); got.segs[len(got.segs)-1].msn != 8 || len(got.open) != 0 {
			t.Errorf("asked for 8, got\n%s", got.text)
		}
		waits(t, beyond) // 8.7 does not come: it stands for 9.0
		waits(t, next)
		r.begin("v", false)
		waits(t, next)
		r.part("v")
		for _, c := range []<-chan result{beyond, next} {
			if got := (<-c).parsed(t); len(got.open) != 1 {
				t.Errorf("asked for the next segment's first part, got\n%s", got.text)
			}
		}
		if got := <-r.reload(t.Context(), "v", ask(3, 0)); got.err != nil {
			t.Errorf("what is past is not waited for: %v", got.err)
		}
	})
}

func TestReloadGivesTheUnchangedPlaylistWhenTheEdgeStandsStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Options{Mode: low})
		r.start()
		r.segment(7, false)
		before := r.text(t, "v", now())
		c := <-r.reload(t.Context(), "v", ask(8, 0))
		if c.err != nil || c.text != before || c.after != 6*time.Second {
			t.Errorf("after %v: %v\n%s", c.after, c.err, c.text)
		}
	})
}

func TestReloadsTooFarAhead(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.segment(7, false)
	r.begin("v", false)
	r.part("v") // 8.0 is listed; the advance part limit at 0.3 s is 10
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what is to wait ends at once
	for _, tt := range []struct {
		q    Reload
		want error
	}{
		{ask(8, 0), nil},
		{ask(8, 10), context.Canceled},
		{ask(8, 11), ErrTooFar},
		{ask(9, 0), context.Canceled},
		{ask(10, -1), context.Canceled},
		{ask(11, -1), ErrTooFar},
		{ask(11, 0), ErrTooFar},
		{ask(1<<61, -1), ErrTooFar},
		{ask(0, 99), nil},
	} {
		if _, err := r.Playlist(ctx, "v", tt.q, false); !errors.Is(err, tt.want) || (err != nil) != (tt.want != nil) {
			t.Errorf("%+v: %v, want %v", tt.q, err, tt.want)
		}
	}
	if _, err := r.Playlist(ctx, "x", now(), false); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown rendition: %v", err)
	}
	if _, err := r.Playlist(ctx, "x", ask(1, 1), false); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown rendition waited for: %v", err)
	}
}

func TestAdvancePartLimit(t *testing.T) {
	t.Parallel()
	for target, want := range map[time.Duration]int{
		0: 3, 100 * time.Millisecond: 30, 335 * time.Millisecond: 9, time.Second: 3, 2 * time.Second: 3,
	} {
		e := New(Options{})
		e.parts["v"] = target
		l := &liveRendition{}
		l.ID = "v"
		if got := e.advanceLimit(l); got != want {
			t.Errorf("part target %v: %d, want %d", target, got, want)
		}
	}
}

// TestHintsAreKept: what is hinted is the next part, also over a segment's end, however long the segment gets.
func TestHintsAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Options{Mode: low})
		r.start()
		r.segment(7, false)
		check := func(write func()) {
			t.Helper()
			hint := r.list(t, "v", now()).hint
			msn, part := named(t, hint)
			c := r.fetch(t.Context(), "v", msn, part)
			waits(t, c)
			write()
			a := <-c
			if a.err != nil {
				t.Fatalf("hint %s: %v", hint, a.err)
			}
			l := r.list(t, "v", now())
			if got := l.open[len(l.open)-1].uri; got != hint {
				t.Errorf("hinted %s, listed %s", hint, got)
			}
			again := <-r.fetch(t.Context(), "v", msn, part)
			if string(again.place.Data) != string(a.place.Data) || len(a.place.Data) == 0 {
				t.Errorf("hint %s gave %q, its part is %q", hint, a.place.Data, again.place.Data)
			}
		}
		for _, n := range []int{7, 3, 1, 12} { // hints do not know where a segment ends
			r.begin("a", false)
			check(func() { r.begin("v", false); r.part("v") })
			for range n - 1 {
				check(func() { r.part("v") })
			}
			for range n {
				r.part("a")
			}
			whole := r.store // the segment's bytes are those of its parts
			_ = whole
			r.finish(n, "v", "a")
			l := r.list(t, "v", now())
			last := l.segs[len(l.segs)-1]
			var joined string
			for _, p := range last.parts {
				msn, part := named(t, p.uri)
				joined += string((<-r.fetch(t.Context(), "v", msn, part)).place.Data)
			}
			if s, err := r.ReadSegment(t.Context(), "v", last.msn); err != nil || string(s.Data) != joined {
				t.Errorf("segment %d is %q, its parts %q: %v", last.msn, s.Data, joined, err)
			}
		}
	})
}

func named(t *testing.T, uri string) (msn int64, part int) {
	t.Helper()
	var n [2]int64
	k := 0
	for _, c := range uri[len("v/"):] {
		switch {
		case c == '.':
			k++
		case k < 2:
			n[k] = n[k]*10 + int64(c-'0')
		}
	}
	if k != 2 {
		t.Fatalf("no part: %s", uri)
	}
	return n[0], int(n[1])
}

func TestHintThatNeverComesEndsAtOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   func(r *rig)
		want error
		in   time.Duration
	}{
		"other parameters": {func(r *rig) {
			r.finish(2, "v", "a")
			n := r.AddInit(frame.Video, 90000, timeline.Init{Rendition: "v", Codec: "codec.v"},
				[]byte("another init of v"))
			r.Begin("v", timeline.Mark{Start: r.wall, Discontinuity: true}, n, int64(r.at*90000))
		}, ErrUnknown, 0},
		"a gap": {func(r *rig) { r.finish(2, "v", "a"); r.begin("v", false); r.Finish("v", 90000) }, ErrUnknown, 0},
		"the encoder is gone": {func(r *rig) {
			r.finish(2, "v", "a")
			r.Live(false)
		}, ErrUnknown, 930 * time.Millisecond},
		"the end": {func(r *rig) { r.Close() }, ErrUnknown, 0},
		"the picture goes on without sound": {func(r *rig) {
			r.part("v")
			r.Finish("v", 0)
			r.begin("v", false)
			r.part("v")
		}, ErrUnknown, 930 * time.Millisecond},
		"the encoder is silent": {func(*rig) {}, ErrUnknown, 930 * time.Millisecond}, // PART-HOLD-BACK
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(Options{Mode: low})
				r.start()
				r.segment(7, false)
				r.begin("v", false)
				r.begin("a", false)
				r.part("v")
				r.part("a")
				r.part("v")
				r.part("a")
				id := "v"
				if strings.HasSuffix(name, "without sound") {
					id = "a"
				}
				msn, part := named(t, r.list(t, id, now()).hint)
				c := r.fetch(t.Context(), id, msn, part)
				waits(t, c)
				tt.do(r)
				if a := <-c; !errors.Is(a.err, tt.want) || a.after != tt.in {
					t.Errorf("%v after %v, want %v after %v", a.err, a.after, tt.want, tt.in)
				}
			})
		})
	}
}

// TestHintIsFulfilledBehindADiscontinuity: a part that was hinted and did not come, since the encoder left, is the
// first one of what follows. A 404 costs Shaka a second and more.
func TestHintIsFulfilledBehindADiscontinuity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Options{Mode: low})
		r.start()
		r.segment(7, false)
		r.begin("v", false)
		r.begin("a", false)
		r.part("v")
		r.part("a")
		msn, part := named(t, r.list(t, "v", now()).hint)
		c := r.fetch(t.Context(), "v", msn, part)
		r.Live(false)
		r.finish(1, "v", "a")
		waits(t, c)
		time.Sleep(500 * time.Millisecond)
		waits(t, c)
		r.Live(true)
		r.begin("v", true)
		r.begin("a", true)
		waits(t, c)
		r.part("v")
		a, follows := <-c, r.bufs["v"]
		if a.err != nil || !bytes.Equal(a.place.Data, follows) {
			t.Errorf("%q, %v, want %q", a.place.Data, a.err, follows)
		}
		again, err := r.ReadPart(t.Context(), "v", msn, part)
		listed, other := r.ReadPart(t.Context(), "v", msn+1, 0)
		if err != nil || other != nil || !bytes.Equal(again.Data, follows) || !bytes.Equal(listed.Data, follows) {
			t.Errorf("by the hint %q, %v, by its name in the playlist %q, %v, want %q", again.Data, err, listed.Data,
				other, follows)
		}
	})
}

// TestHintIsOmitted asks for the whole playlist and for a delta by turns where one of them may have been rendered
// before.
func TestHintIsOmitted(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	delta := now()
	delta.Skip = true
	r.start()
	r.segment(7, false)
	if h := r.list(t, "v", now()).hint; h != "v/7.7.m4s" {
		t.Errorf("hint %q", h)
	}
	r.Live(false)
	if h := r.list(t, "v", now()).hint; h != "" {
		t.Errorf("the encoder is away, hint %q", h)
	}
	r.Live(true)
	if h := r.list(t, "v", now()).hint; h != "" {
		t.Errorf("what comes is behind a discontinuity, hint %q", h)
	}
	r.begin("v", true)
	r.begin("a", true)
	if h := r.list(t, "v", delta).hint; h != "" {
		t.Errorf("what has begun is behind a discontinuity, hint %q", h)
	}
	for range 7 {
		r.part("v")
		r.part("a")
	}
	r.finish(7, "v", "a")
	if h := r.list(t, "v", now()).hint; h != "v/8.7.m4s" {
		t.Errorf("the encoder goes on, hint %q", h)
	}
	if l := r.list(t, "v", now()); l.segs[len(l.segs)-1].parts[0].uri != "v/8.0.m4s" {
		t.Errorf("first part behind a discontinuity is %+v", l.segs[len(l.segs)-1].parts[0])
	}
	r.begin("v", false)
	r.Finish("v", 90000)
	if h := r.list(t, "v", now()).hint; h != "" {
		t.Errorf("no media now, hint %q", h)
	}
	r.begin("v", false)
	if h := r.list(t, "v", delta).hint; h != "" {
		t.Errorf("what has begun is behind a gap, hint %q", h)
	}
	r.part("v")
	if h := r.list(t, "v", now()).hint; h != "v/10.1.m4s" {
		t.Errorf("media is back, hint %q", h)
	}
	r.Close()
	if h := r.list(t, "v", now()).hint; h != "" {
		t.Errorf("ended, hint %q", h)
	}
}

func TestPartsAndSegmentsThatAreNotThere(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.segment(7, false)
	r.segment(7, false, "v")
	r.begin("a", false)
	r.Finish("a", 100800)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		id   string
		msn  int64
		part int
		want error
	}{
		{"v", 7, 0, nil},
		{"v", 7, 6, nil},
		{"v", 6, 0, ErrUnknown},
		{"v", 7, 8, ErrUnknown},
		{"v", 10, 0, ErrUnknown},
		{"v", 9, 1, ErrUnknown},
		{"v", 7, -1, ErrUnknown},
		{"v", -1, 0, ErrUnknown},
		{"x", 7, 0, ErrUnknown},
		{"a", 8, 0, ErrUnknown},
		{"v", 9, 0, context.Canceled},
		{"v", 8, 7, context.Canceled},
		{"v", 1 << 62, 0, ErrUnknown},
	} {
		if _, err := r.ReadPart(ctx, tt.id, tt.msn, tt.part); !errors.Is(err, tt.want) ||
			(err != nil) != (tt.want != nil) {
			t.Errorf("part %s %d.%d: %v, want %v", tt.id, tt.msn, tt.part, err, tt.want)
		}
	}
	for _, tt := range []struct {
		id   string
		msn  int64
		want error
	}{
		{"v", 7, nil},
		{"v", 8, nil},
		{"v", 9, context.Canceled},
		{"v", 11, ErrUnknown},
		{"v", 6, ErrUnknown},
		{"a", 8, ErrUnknown},
		{"v", -1, ErrUnknown},
	} {
		if _, err := r.ReadSegment(ctx, tt.id, tt.msn); !errors.Is(err, tt.want) || (err != nil) != (tt.want != nil) {
			t.Errorf("segment %s %d: %v, want %v", tt.id, tt.msn, err, tt.want)
		}
	}
	if _, err := r.ReadInit("v", 1); !errors.Is(err, ErrUnknown) {
		t.Errorf("init that is not there: %v", err)
	}
	if _, err := r.ReadInit("v", -1); !errors.Is(err, ErrUnknown) {
		t.Errorf("init that is not there: %v", err)
	}
	if p, err := r.ReadInit("a", 0); err != nil || string(p.Data) != "init of a" {
		t.Errorf("init %q, %v", p.Data, err)
	}
}

func TestSegmentIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Options{Mode: low})
		r.start()
		r.segment(7, false)
		c := later(func() (string, Location, error) {
			p, err := r.ReadSegment(t.Context(), "v", 8)
			return "", p, err
		})
		r.begin("v", false)
		r.part("v")
		waits(t, c)
		r.finish(1, "v")
		if a := <-c; a.err != nil || len(a.place.Data) != 100 {
			t.Errorf("%d bytes, %v", len(a.place.Data), a.err)
		}
		c = later(func() (string, Location, error) {
			p, err := r.ReadSegment(t.Context(), "v", 9)
			return "", p, err
		})
		if a := <-c; !errors.Is(a.err, ErrTimeout) || a.after != 6*time.Second {
			t.Errorf("%v after %v", a.err, a.after)
		}
	})
}

// TestViewerThatLeavesLeavesNothing: goleak and the bubble would notice.
func TestViewerThatLeavesLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Options{Mode: low})
		r.start()
		r.segment(7, false)
		cause := errors.New("went away")
		ctx, leave := context.WithCancelCause(t.Context())
		var all []<-chan result
		for range 50 {
			all = append(all, r.reload(ctx, "v", ask(8, 0)), r.fetch(ctx, "a", 8, 0))
		}
		leave(cause)
		for _, c := range all {
			if a := <-c; !errors.Is(a.err, cause) || a.after != 0 {
				t.Errorf("%v after %v", a.err, a.after)
			}
		}
	})
}

func TestNothingIsShownBeforeOneWholeSegment(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	if _, err := r.Describe(); !errors.Is(err, ErrNotYet) {
		t.Errorf("describe: %v", err)
	}
	r.start()
	r.begin("v", false)
	r.begin("a", false)
	r.part("v")
	r.Finish("v", 0)
	if _, err := r.Playlist(t.Context(), "v", now(), false); !errors.Is(err, ErrNotYet) {
		t.Errorf("playlist while the audio is open: %v", err)
	}
	r.part("a")
	r.Finish("a", 0)
	if _, err := r.Playlist(t.Context(), "v", now(), false); err != nil {
		t.Error(err)
	}
	if l, err := r.Describe(); err != nil || len(l) != 2 || l[0].ID != "v" || len(l[0].Inits) != 1 || l[1].Peak == 0 {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestNothingRecorded: a viewer of an earlier process, of which nothing was recorded, is told to ask again until there
// is something, or will be nothing.
func TestNothingRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	for _, q := range []Reload{now(), ask(3, 0)} {
		if _, err := r.Playlist(t.Context(), "v", q, false); !errors.Is(err, ErrNotYet) {
			t.Errorf("before anything came: %v", err)
		}
	}
	r.Close()
	if _, err := r.Playlist(t.Context(), "v", now(), false); !errors.Is(err, ErrUnknown) {
		t.Errorf("when nothing will come: %v", err)
	}
	r = newRig(Options{Mode: low})
	r.start()
	if _, err := r.Playlist(t.Context(), "x", now(), false); !errors.Is(err, ErrUnknown) {
		t.Errorf("a rendition that is not among those: %v", err)
	}
}
