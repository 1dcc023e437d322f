package packager_test

import (
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
)

// TestLostFramesStretchNoPart: players refuse a part that is longer than the playlist's part target.
func TestLostFramesStretchNoPart(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	p := b.publication(2*time.Second, part)
	b.play(p, script{fps: 30, gop: 60, seconds: 20, lose: func(i int) bool { return i%50 >= 20 && i%50 < 25 || i%37 == 5 }})
	if err := p.Close(nil); err != nil {
		t.Fatal(err)
	}
	tl := b.finish()
	b.check(tl)
	for _, l := range tl.Lanes {
		limit := b.edge.PartLimit(l.ID)
		for i, c := range l.Chunks {
			frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
			if err != nil {
				t.Fatal(err)
			}
			for k, f := range frags {
				if long := time.Duration(f.Duration) * time.Second / time.Duration(l.Timescale); long > limit {
					t.Errorf("%s %d part %d lasts %v, the playlist says at most %v", l.ID, i, k, long, limit)
				}
			}
		}
	}
}
