package window

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/hls"
)

// TestCovers: of a clip, the segments and parts that its playlist lists can be had, and no others.
func TestCovers(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	r := newRig(Options{Mode: low})
	r.start()
	for range 12 {
		r.segment(1+rnd.IntN(6), rnd.IntN(4) == 0)
		if rnd.IntN(4) == 0 {
			r.wall = r.wall.Add(7 * time.Second) // the encoder was away
		}
	}
	r.begin("v", false)
	r.part("v")
	event := Reload{Event: true, MSN: -1, Part: -1}
	whole := r.list(t, "v", event)
	for range 500 {
		s := hls.Clip{From: float64(rnd.IntN(60)) * 0.3}
		s.To = s.From + float64(rnd.IntN(20))*0.3
		if rnd.IntN(2) == 0 {
			s = hls.Clip{
				Begin: noon.Add(time.Duration(rnd.IntN(60)) * perPart),
				End:   noon.Add(time.Duration(60+rnd.IntN(60)) * perPart),
			}
		}
		var text string
		if e, ok := hls.Find([]byte(whole.text), s); ok {
			b, _ := hls.Within([]byte(whole.text), e)
			text = string(b)
		}
		for _, g := range whole.segs {
			for _, id := range []string{"v", "a", "unknown"} {
				if got := r.Covers(id, hls.Resource{Init: -1, MSN: g.msn, Part: -1}, s); got != strings.Contains(text,
					"\n"+g.uri+"\n") {
					t.Fatalf("%s %s of %+v: covered %v in\n%s", id, g.uri, s, got, text)
				}
			}
			for k := range g.parts {
				if got := r.Covers("v", hls.Resource{Init: -1, MSN: g.msn, Part: k}, s); got != strings.Contains(text,
					"\n"+g.uri+"\n") {
					t.Fatalf("part %d of %s of %+v: covered %v in\n%s", k, g.uri, s, got, text)
				}
			}
		}
	}
	if !r.Covers("v", hls.Resource{Init: 0, Part: -1}, hls.Clip{From: 1e6}) ||
		!r.Covers("v", hls.Resource{Init: -1, MSN: 1e6, Part: -1}, hls.Clip{From: 1e6}) {
		t.Error("an initialization segment, or one that is not there, is not covered")
	}
}

// TestCoversNext: what comes next is outside once the clip is over, also by the name of the part that would have been
// in the segment before.
func TestCoversNext(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.segment(2, false)
	next := hls.Resource{Init: -1, MSN: 8, Part: 0}
	hinted := hls.Resource{Init: -1, MSN: 7, Part: 2}
	for to, want := range map[float64]bool{0.3: false, 0.6: false, 0.7: true, 0: true} {
		if got := r.Covers("v", next, hls.Clip{To: to}); got != want {
			t.Errorf("the next segment, until %v: %v", to, got)
		}
	}
	r.begin("v", false)
	r.part("v")
	if r.Covers("v", hinted, hls.Clip{To: 0.6}) || !r.Covers("v", hinted, hls.Clip{To: 0.7}) {
		t.Error("the first part of the next segment, by the name that was hinted")
	}
	if open := (hls.Resource{Init: -1, MSN: 8, Part: 0}); r.Covers("v", open, hls.Clip{From: 0.9}) ||
		!r.Covers("v", open, hls.Clip{From: 0.8}) {
		t.Error("the open segment, as far as it goes")
	}
}
