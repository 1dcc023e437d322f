package packager_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// schedule is what an encoder sends of which now and then something stays away.
type schedule struct {
	script

	away    [2][]stretch // when frames of a kind do not come
	late    [2]time.Duration
	uneven  bool
	breaks  []time.Duration // when its parameters change
	segment time.Duration
}

type stretch struct{ from, to time.Duration }

// scheduleOf makes up a schedule.
func scheduleOf(seed uint64) schedule {
	r := rand.New(rand.NewPCG(seed, 4))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(r.Int64N(int64(most-least)))
	}
	fps := []float64{30, 25, 24, 60, 15, 50, 30000.0 / 1001, 10, 5, 2, 1}[r.IntN(11)]
	gop := max(1, int(fps*[]float64{0.5, 1, 2, 2, 2, 4}[r.IntN(6)]))
	s := schedule{segment: []time.Duration{2 * time.Second, 4 * time.Second}[r.IntN(2)]}
	s.script = script{fps: fps, gop: gop, reorder: r.IntN(4), seconds: 24}
	if fps < 10 {
		s.reorder = 0
	}
	s.pyramid = fps >= 10 && r.IntN(4) == 0
	s.uneven = r.IntN(4) == 0
	for k := range s.away {
		for range r.IntN(4) {
			from := between(0, 22*time.Second)
			s.away[k] = append(s.away[k], stretch{from, from + between(200*ms, 3500*ms)})
		}
		switch r.IntN(8) {
		case 0: // it starts late
			s.away[k] = append(s.away[k], stretch{-time.Second, between(100*ms, 6*time.Second)})
		case 1: // it ends early
			s.away[k] = append(s.away[k], stretch{between(3*time.Second, 23*time.Second), time.Hour})
		}
		if r.IntN(3) == 0 {
			s.late[k] = between(0, 900*ms)
		}
	}
	if fps <= 10 { // where sound alone has said how long parts are, no whole number of such pictures may fit
		s.away[frame.Video] = slices.DeleteFunc(s.away[frame.Video], func(a stretch) bool {
			return a.from < 3*time.Second
		})
	}
	if r.IntN(3) == 0 {
		s.breaks = append(s.breaks, between(time.Second, 22*time.Second))
	}
	return s
}

func (s schedule) String() string {
	const what = "%v fps, GOP %d, %d reordered (pyramid %t), uneven %t, segments of %v, away %v, late %v, breaks %v"
	return fmt.Sprintf(what, s.fps, s.gop, s.reorder, s.pyramid, s.uneven, s.segment,
		s.away, s.late, s.breaks)
}

// sent is what comes of it, in order of arrival.
func (s schedule) sent() []frame.Frame {
	frames := slices.DeleteFunc(s.frames(), func(f frame.Frame) bool {
		return slices.ContainsFunc(s.away[f.Kind], func(a stretch) bool { return f.DTS >= a.from && f.DTS < a.to })
	})
	for i := range frames {
		if s.uneven && frames[i].Kind == frame.Video { // it lasts until the next one, which nobody knows yet
			frames[i].Duration /= 2
		}
	}
	stamp(frames)
	arrive(frames, map[frame.Kind]time.Duration{frame.Video: s.late[frame.Video], frame.Audio: s.late[frame.Audio]})
	return frames
}

// run cuts it.
func (s schedule) run(t *testing.T) (*bench, *timeline.Timeline) {
	t.Helper()
	b := newBench(t, low)
	p := b.publication(s.segment, part)
	configure(t, p, s.script)
	if s.uneven {
		if err := p.Rate(s.fps, false); err != nil {
			t.Fatal(err)
		}
	}
	frames := s.sent()
	for _, at := range s.breaks {
		i := slices.IndexFunc(frames, func(f frame.Frame) bool {
			return f.Kind == frame.Video && f.Key && f.DTS >= at
		})
		if i < 0 {
			continue
		}
		write(t, p, frames[:i])
		frames = frames[i:]
		other := video()
		other.PPS = append(slices.Clone(other.PPS), 0x80)
		change := p.Discontinuity("video parameters changed")
		if err := errors.Join(change, p.Configure(other), p.Rate(s.fps, !s.uneven)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, p, frames)
	closed(t, p)
	return b, b.finish()
}

// TestSchedules: whatever stays away, what is published breaks no rule.
func TestSchedules(t *testing.T) {
	t.Parallel()
	seeds := []uint64{5071, 5277, 5295, 5576, 5711, 5960, 10934, 37388, 39598} // those of rare defects
	for seed := range uint64(500) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			keepsRules(t, seed)
		})
	}
}

// FuzzSchedules is TestSchedules for any number.
func FuzzSchedules(f *testing.F) {
	f.Add(uint64(0))
	f.Fuzz(keepsRules)
}

func keepsRules(t *testing.T, seed uint64) {
	t.Helper()
	s := scheduleOf(seed)
	b, tl := s.run(t)
	b.lawful(tl)
	if t.Failed() {
		t.Log(s)
	}
}

// lawful checks what RFC 8216bis wants of segments and parts: no segment rounds to more than the target duration, no
// part is longer than the part target, and none shorter than 85 % of it but a segment's last and one that begins with a
// key frame. Decode times have no hole within a segment, and between two of them as long as its last picture stands.
func (b *bench) lawful(tl *timeline.Timeline) {
	b.t.Helper()
	for _, l := range tl.Renditions {
		limit := b.edge.PartLimit(l.ID).Seconds()
		next := int64(-1)
		for i, c := range l.Chunks {
			if long := l.Seconds(i); long <= 0 || math.Round(long) > float64(tl.Target) {
				b.t.Errorf("%s %d (gap %t) lasts %.3f s, target %d s", l.ID, i, c.Gap, long, tl.Target)
			}
			// What is in front of a rendition's first segment is as long as the other one's segments.
			goesOn := i > 0 && !c.Gap && !l.Chunks[i-1].Gap && !tl.Marks[i].Discontinuity
			if joins := i > 0 && l.Chunks[i-1].Gap; c.Time < next && !joins || goesOn && c.Time > next+2 {
				b.t.Errorf("%s %d starts at %d, the one before ends at %d", l.ID, i, c.Time, next)
			}
			next = c.Time + c.Duration
			if c.Gap {
				continue
			}
			frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
			if err != nil || len(frags) == 0 {
				b.t.Fatalf("%s %d: %d fragments: %v", l.ID, i, len(frags), err)
			}
			first := frags[0].Samples[0]
			other := l.Kind == frame.Video && tl.Marks[i].Discontinuity && first.CompositionOffset == 0
			b.lawfulParts(l, i, frags, limit, other)
		}
	}
}

func (b *bench) lawfulParts(l *timeline.Rendition, i int, frags []cmaf.Fragment, limit float64, moved bool) {
	b.t.Helper()
	c := l.Chunks[i]
	at := int64(frags[0].BaseMediaDecodeTime)
	if at != c.Time && !moved {
		b.t.Errorf("%s %d starts at %d, recorded %d", l.ID, i, at, c.Time)
	}
	for k, f := range frags {
		if int64(f.BaseMediaDecodeTime) != at {
			b.t.Errorf("%s %d part %d starts at %d, the one before ends at %d", l.ID, i, k, f.BaseMediaDecodeTime, at)
		}
		at += int64(f.Duration)
		long := float64(f.Duration) / float64(l.Timescale)
		free := k == len(frags)-1 || f.Samples[0].Sync && l.Kind == frame.Video || k == 0 && moved
		if long > limit+1e-5 || long < 0.85*limit-1e-5 && !free {
			b.t.Errorf("%s %d part %d of %d lasts %.5f s, part target %.5f", l.ID, i, k, len(frags), long, limit)
		}
	}
	if at > c.Time+c.Duration {
		b.t.Errorf("%s %d: samples last to %d, recorded %d", l.ID, i, at, c.Time+c.Duration)
	}
}
