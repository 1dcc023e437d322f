package packager_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/timeline"
)

// TestPartTargetOutlivesAReconnect has an encoder come back with another frame rate: PART-TARGET was said and never changes, so no
// later part may be longer, nor much shorter.
func TestPartTargetOutlivesAReconnect(t *testing.T) {
	t.Parallel()
	rates := []float64{15, 24, 25, 29.97, 30, 50, 59.94, 60}
	for _, first := range rates {
		for _, second := range rates {
			t.Run(fmt.Sprintf("%g then %g", first, second), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, low)
				for _, fps := range []float64{first, second} {
					p := b.publication(2*time.Second, part)
					b.play(p, script{fps: fps, gop: int(math.Round(2 * fps)), seconds: 6})
					if err := p.Close(nil); err != nil {
						t.Fatal(err)
					}
				}
				tl := b.finish()
				for _, l := range tl.Lanes {
					if l.PartTarget == 0 {
						t.Fatalf("%s has no part target", l.ID)
					}
					target := float64(l.PartTarget) / 1e6
					least := 0.85 * target
					if l.ID == timeline.MainVideo { // where no number of frames lies between, the longest that fits
						least = min(least, math.Floor(target*second)/second-1e-5)
					}
					for i, c := range l.Chunks {
						frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
						if err != nil {
							t.Fatal(err)
						}
						for k, f := range frags {
							long := float64(f.Duration) / float64(l.Timescale)
							if long > target+1e-5 || long < least && k < len(frags)-1 {
								t.Errorf("%s %d part %d lasts %.5f s, target %.5f", l.ID, i, k, long, target)
							}
						}
					}
				}
			})
		}
	}
}
