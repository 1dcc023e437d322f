package packager_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"millrace/internal/media/timeline"
)

// TestSumsOfLengthsStayTogether: after any number of reconnects the lengths of sound and picture add up to the same,
// and to where the media is: players place what they play by that.
func TestSumsOfLengthsStayTogether(t *testing.T) {
	t.Parallel()
	for name, reorder := range map[string]int{"without B-frames": 0, "with B-frames": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, 2))
			b := newBench(t, low)
			for range 200 {
				p := b.publication(2*time.Second, part)
				b.play(p, script{fps: 30, gop: 60, seconds: 0.3 + 4*random.Float64(), reorder: reorder})
				closed(t, p)
			}
			tl := b.finish()
			sums := map[string]float64{}
			worst, off := 0.0, 0.0 // seconds
			for i := range tl.Marks {
				for _, l := range tl.Renditions {
					begins := float64(l.Chunks[i].Time)/float64(l.Timescale) - timeline.Origin
					if d := math.Abs(begins - sums[l.ID]); d > off {
						off = d
					}
					sums[l.ID] += l.Seconds(i)
				}
				worst = max(worst, math.Abs(sums["v"]-sums["a"]))
			}
			if worst > 0.12 || off > 0.12 {
				t.Errorf("the sums are up to %.3f s apart, and %.3f s from where the media is", worst, off)
			}
		})
	}
}
