package packager_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// TestLostFramesStretchNoPart: players refuse a part that is longer than the playlist's part target.
func TestLostFramesStretchNoPart(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	quarter := make([]bool, 2000)
	for i := range quarter {
		quarter[i] = random.IntN(4) == 0
	}
	for name, s := range map[string]script{
		"here and there": {
			fps: 30, gop: 60, seconds: 20, lose: func(i int) bool { return i%50 >= 20 && i%50 < 25 || i%37 == 5 },
		},
		"a quarter":      {fps: 30, gop: 60, seconds: 20, lose: func(i int) bool { return i%60 > 0 && quarter[i] }},
		"half a second":  {fps: 30, gop: 60, seconds: 20, lose: func(i int) bool { return i%60 >= 20 && i%60 < 35 }},
		"before the key": {fps: 30, gop: 60, seconds: 20, lose: func(i int) bool { return i%60 >= 48 }},
		"most of a GOP":  {fps: 30, gop: 60, seconds: 20, lose: func(i int) bool { return i > 120 && i < 160 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			p := b.publication(2*time.Second, part)
			b.play(p, s)
			closed(t, p)
			b.noLongPart(b.finish())
		})
	}
}

// TestHoleInFrontOfAKeyFrame: wherever in a part what is missing begins, the dates go on by the lengths that the
// playlist says.
func TestHoleInFrontOfAKeyFrame(t *testing.T) {
	t.Parallel()
	for first := 40; first < 60; first++ {
		b := newBench(t, low)
		p := b.publication(2*time.Second, part)
		b.play(p, script{fps: 30, gop: 60, seconds: 12, lose: func(i int) bool { return i >= 180 && i%60 >= first }})
		closed(t, p)
		tl := b.finish()
		b.noLongPart(tl)
		b.dates(tl)
	}
}

// TestStandingPicturesStretchNoPart: nor does a picture that stands at a variable rate, or sound with holes.
func TestStandingPicturesStretchNoPart(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	p := b.publication(2*time.Second, part)
	if err := errors.Join(p.Configure(video()), p.Rate(24, false), p.Configure(audio())); err != nil {
		t.Fatal(err)
	}
	var kept []frame.Frame
	last, n, sounds := -1, 0, 0
	for _, f := range (script{fps: 30, gop: 60, seconds: 20}).frames() {
		if f.Kind == frame.Video {
			if n++; n > 90 && (n-1)%60 > 5 && (n-1)%60 < 26 { // 0.7 s
				continue
			}
			if last >= 0 {
				kept[last].Duration = f.DTS - kept[last].DTS
			}
			last = len(kept)
		} else if sounds++; sounds%150 > 120 { // 0.6 s
			continue
		}
		kept = append(kept, f)
	}
	stamp(kept)
	write(t, p, kept)
	closed(t, p)
	tl := b.finish()
	b.noLongPart(tl)
	if _, most, _ := b.offsets(tl, kept, frame.Video); most > 10.04 {
		t.Errorf("a picture is presented %v s late", most-10)
	}
}

// noLongPart checks that no part is longer than the playlist says, and that nothing is missing between them.
func (b *bench) noLongPart(tl *timeline.Timeline) {
	b.t.Helper()
	b.whole(tl)
	for _, l := range tl.Renditions {
		limit := b.edge.PartLimit(l.ID)
		for i, c := range l.Chunks {
			frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
			if err != nil {
				b.t.Fatal(err)
			}
			for k, f := range frags {
				if long := time.Duration(f.Duration) * time.Second / time.Duration(l.Timescale); long > limit {
					b.t.Errorf("%s %d part %d lasts %v, the playlist says at most %v", l.ID, i, k, long, limit)
				}
			}
		}
	}
}
