package window

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// derivedRig is a rig with a derived rendition of its video.
func derivedRig(t *testing.T, o Options) *rig {
	t.Helper()
	o.Mode = low
	r := newRig(o)
	r.start()
	if err := r.Derived().Add("s", "v"); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestDerivedOfTheLost has a storage that is away: a derived rendition's segment that is to be made of one that is lost
// becomes a gap with it, as nobody can make it.
func TestDerivedOfTheLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := derivedRig(t, Options{MaxHeld: 1400})
		r.store.before = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		defer r.run(t)()
		for range 6 {
			r.segment(7, false)
		}
		have, want := r.list(t, "s", now()), r.list(t, "v", now())
		for i, s := range want.segs {
			if have.segs[i].gap != s.gap {
				t.Errorf("segment %d: gap %v, in the source %v", s.msn, have.segs[i].gap, s.gap)
			}
		}
	})
}

// TestDerivedWhenTheEncoderLeaves has somebody wait for a derived rendition's next part when the source's encoder
// leaves: he is given the first part of what follows, or told after a while that there is none.
func TestDerivedWhenTheEncoderLeaves(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]bool{"for good": false, "and comes back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := derivedRig(t, Options{})
				r.segment(7, false)
				c := r.fetch(t.Context(), "s", 7, 7)
				r.Live(false)
				waits(t, c)
				if back {
					time.Sleep(time.Second)
					r.Live(true)
					r.segment(2, true)
					if a := <-c; a.err != nil || !a.place.NotEncoded || a.place.MSN != 8 || a.place.Part != 0 {
						t.Errorf("%+v, %v", a.place, a.err)
					}
				} else if a := <-c; !errors.Is(a.err, ErrUnknown) || a.after != 2*time.Second {
					t.Errorf("after %v: %v", a.after, a.err)
				}
			})
		})
	}
}

// TestDerivedHintIsOmitted has an encoder of a derived rendition be late with the last segment before a discontinuity.
// The next part is behind it, so no hint names it, also where the encoder has finished that segment.
func TestDerivedHintIsOmitted(t *testing.T) {
	t.Parallel()
	r := derivedRig(t, Options{})
	omitted := func(when string) {
		t.Helper()
		if h := r.list(t, "s", now()).hint; h != "" {
			t.Errorf("%s, hint %q", when, h)
		}
	}
	r.segment(7, false)
	r.Derived().Attach("s", 8)
	r.segment(1, false)
	if h := r.list(t, "s", now()).hint; h != "s/7.7.m4s" {
		t.Errorf("the encoder goes on, hint %q", h)
	}
	r.Live(false)
	r.Live(true)
	r.appendPart(t, 8, 0)
	if !r.Derived().Seal("s", 8) {
		t.Fatal("the segment is not taken")
	}
	omitted("the source's encoder is back")
	if err := r.Derived().Add("late", "v"); err != nil {
		t.Fatal(err)
	}
	if h := r.list(t, "late", now()).hint; h != "" {
		t.Errorf("a rendition that comes now, hint %q", h)
	}
	r.begin("v", true)
	r.begin("a", true)
	r.part("v")
	omitted("the source has gone on")
	r.appendPart(t, 9, 0)
	if h := r.list(t, "s", now()).hint; h != "s/9.1.m4s" {
		t.Errorf("behind the discontinuity, hint %q", h)
	}
}

// appendPart makes the next part of the open segment of the derived rendition, whose bytes nobody else makes.
func (r *rig) appendPart(t *testing.T, msn int64, n int) []byte {
	t.Helper()
	if n == 0 {
		r.bufs["s"] = nil
	}
	r.bufs["s"] = fmt.Appendf(r.bufs["s"], "<live %d.%d>", msn, n)
	if !r.Derived().AppendPart("s", msn, n, r.bufs["s"], partTicks, n == 0) {
		t.Fatalf("part %d of segment %d is not taken", n, msn)
	}
	return bytes.Clone(r.bufs["s"])
}

// TestPublishedPartsStay: the encoder of a derived rendition leaves when two parts of a segment are published. These
// stay what they are, the others are to be made, and who makes them is told what there is, until another encoder has
// it.
func TestPublishedPartsStay(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(r *rig){
		"given up":   func(r *rig) { r.Derived().Skip("s", 9); r.finish(5, "v", "a") },
		"let go":     func(r *rig) { r.Derived().Detach("s"); r.finish(5, "v", "a") },
		"far behind": func(r *rig) { r.finish(5, "v", "a"); r.segment(5, false); r.segment(5, false) },
		"at the end": func(r *rig) { r.finish(5, "v", "a"); r.Close() },
		"taken over": func(r *rig) {
			r.Derived().AppendPart("s", 8, 0, []byte("other bytes"), partTicks, true)
			r.Derived().Skip("s", 9)
			r.finish(5, "v", "a")
		},
		"after storing": func(r *rig) {
			r.finish(5, "v", "a")
			r.Derived().Skip("s", 9)
			r.segment(5, false)
			r.segment(5, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := derivedRig(t, Options{})
				defer r.run(t)()
				r.segment(5, false)
				r.Derived().Attach("s", 8)
				r.begin("v", false)
				r.begin("a", false)
				for range 5 {
					r.part("v")
					r.part("a")
				}
				first := r.appendPart(t, 8, 0)
				head := r.appendPart(t, 8, 1)
				leave(r)
				synctest.Wait()
				if r.Derived().AppendPart("s", 8, 2, append(bytes.Clone(head), "more"...), partTicks, false) {
					t.Error("a part is taken of what was left")
				}
				r.stays(t, first, head)
				r.Derived().Stored("s", 8, false)
				if p, err := r.ReadPart(t.Context(), "s", 8, 0); err != nil || !p.NotEncoded {
					t.Errorf("once another one has it: %+v, %v", p, err)
				}
				if r.Derived().Head("s", 8) != nil {
					t.Error("the head is kept for ever")
				}
			})
		})
	}
}

// stays checks that segment 8 of the derived rendition begins with its head.
func (r *rig) stays(t *testing.T, first, head []byte) {
	t.Helper()
	for n, want := range [][]byte{first, head[len(first):], nil, nil, nil} {
		p, err := r.ReadPart(t.Context(), "s", 8, n)
		if err != nil || p.NotEncoded != (want == nil) || !bytes.Equal(p.Data, want) {
			t.Errorf("part %d: %+v, %v", n, p, err)
		}
	}
	if p, err := r.ReadSegment(t.Context(), "s", 8); err != nil || !p.NotEncoded {
		t.Errorf("segment: %+v, %v", p, err)
	}
	if all, _ := r.Derived().Begun(); len(all) != 1 || all[0].MSN != 8 || !bytes.Equal(all[0].Data, head) {
		t.Errorf("begun: %+v", all)
	}
	if !bytes.Equal(r.Derived().Head("s", 8), head) {
		t.Errorf("the head is %q", r.Derived().Head("s", 8))
	}
	for _, s := range r.list(t, "s", now()).segs {
		if s.msn == 8 && len(s.parts) != 5 && len(s.parts) != 0 { // parts far behind are not listed
			t.Errorf("%d parts are listed", len(s.parts))
		}
	}
}

// TestDependent: who begins in the middle of a segment is told whether players take its first part for one that begins
// with a key frame: in what is listed already they don't, and where the listing knew of it, or is yet to come, they do.
func TestDependent(t *testing.T) {
	t.Parallel()
	r := derivedRig(t, Options{})
	r.segment(5, false)
	r.segment(5, false)
	r.Derived().Attach("s", 8)
	expect := func(when string, msn int64, want ...bool) {
		t.Helper()
		for n, is := range want {
			if got := r.Derived().Dependent("s", msn, n); got != is {
				t.Errorf("%s, part %d.%d: %t", when, msn, n, got)
			}
		}
	}
	expect("late", 8, false, true, true, true, true, false)
	r.appendPart(t, 8, 0)
	r.appendPart(t, 8, 1)
	expect("late, and begun", 8, false, true, true, true, true, false)
	r.Derived().Detach("s")
	expect("left", 8, false, true, true, true, true, false)
	r.Derived().Attach("s", 9)
	r.begin("v", false)
	r.begin("a", false)
	r.part("v")
	r.appendPart(t, 9, 0)
	expect("open", 9, false, false, false)
	r.Derived().Detach("s")
	r.part("v")
	r.part("v")
	r.finish(3, "v", "a")
	expect("listed behind its head", 9, false, false, true, false)
	expect("unknown", 99, false)
}

// TestPartsOfWhatIsOwed leaves a segment that was listed before it was begun: the part of it that was published stays,
// whatever memory lets go.
func TestPartsOfWhatIsOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := derivedRig(t, Options{})
		defer r.run(t)()
		r.segment(5, false)
		r.segment(5, false)
		r.Derived().Attach("s", 8)
		first := r.appendPart(t, 8, 0)
		head := r.appendPart(t, 8, 1)
		for range 6 {
			r.segment(5, false)
			synctest.Wait()
		}
		r.stays(t, first, head)
	})
}

// TestTakenIsNotLate has somebody be told to make a segment as a whole: anyone who makes the derived rendition from
// there on does not make it too.
func TestTakenIsNotLate(t *testing.T) {
	t.Parallel()
	r := derivedRig(t, Options{})
	r.segment(5, false)
	r.segment(5, false)
	if p, err := r.ReadSegment(t.Context(), "s", 8); err != nil || !p.NotEncoded {
		t.Fatalf("%+v, %v", p, err)
	}
	r.Derived().Attach("s", 8)
	if r.Derived().AppendPart("s", 8, 0, []byte("a second one"), partTicks, true) {
		t.Error("two make it")
	}
	if p, err := r.ReadPart(t.Context(), "s", 8, 1); err != nil || !p.NotEncoded {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestStoredIsWaitedFor waits for segments to be stored, of which one is lost.
func TestStoredIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Options{Mode: low, MaxHeld: 1500})
		back := r.store.hang()
		defer r.run(t)()
		r.start()
		r.segment(7, false)
		stored, lost := make(chan error, 1), make(chan error, 1)
		go func() { stored <- r.Stored(t.Context(), "v", 7) }()
		r.begin("v", false)
		r.begin("a", false)
		go func() { lost <- r.Stored(t.Context(), "v", 8) }()
		synctest.Wait()
		for range 7 {
			r.part("v")
			r.part("a")
		}
		r.finish(7, "v", "a")
		if err := <-lost; !errors.Is(err, ErrUnknown) {
			t.Errorf("the lost one: %v", err)
		}
		synctest.Wait()
		if len(stored) != 0 {
			t.Error("not waited for")
		}
		close(back)
		if err := <-stored; err != nil {
			t.Error(err)
		}
	})
}

// TestCostOfAskingDoesNotGrow records for hours without anybody watching the sliding playlist: what is told of it is
// its own end, and what is told of the video around a segment is what was asked for.
func TestCostOfAskingDoesNotGrow(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low, MaxHeld: 1})
	r.Target(2, map[string]time.Duration{timeline.MainVideo: perPart})
	r.Live(true)
	const n = 3000
	for i := range n {
		in := timeline.Init{Rendition: timeline.MainVideo, Codec: fmt.Sprint("codec.", i/1000)}
		k := r.AddInit(frame.Video, 90000, in, fmt.Append(nil, i/1000))
		r.Begin(timeline.MainVideo, timeline.Mark{Start: r.wall}, k, int64(i)*180000)
		r.Part(timeline.MainVideo, []byte("part"), 180000, true)
		r.Finish(timeline.MainVideo, 0)
	}
	renditions, err := r.Describe()
	if err != nil || len(renditions[0].Inits) != 3 || len(renditions[0].Listed) != 1 ||
		renditions[0].Listed[0].Codec != "codec.2" {
		t.Errorf("%+v, %v", renditions, err)
	}
	for _, tt := range []struct{ msn, first, next int64 }{
		{-1, 7 + n - 6, 7 + n}, {7, 7, 13}, {1000, 995, 1006}, {1 << 40, 7 + n - 5, 7 + n},
	} {
		v, err := r.VideoAround(tt.msn, 5)
		if err != nil || v.First != tt.first || v.Next() != tt.next ||
			v.Rendition(timeline.MainVideo).Chunks[0].Time != (tt.first-7)*180000 {
			t.Errorf("around %d: from %d to %d, %v", tt.msn, v.First, v.Next(), err)
		}
	}
}
