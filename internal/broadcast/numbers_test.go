package broadcast_test

import (
	"testing"
	"time"

	"millrace/internal/id"
)

// TestNobodyUsesAnothersNumbers: a node published while storage was away, and dies. Anyone who goes on, itself without
// its journal or another one, gives what comes then other media sequence numbers and another generation.
func TestNobodyUsesAnothersNumbers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "b"} {
		t.Run("goes on: "+name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				a, s := w.start("a"), w.stream()
				// segments of 4 s: 0, 1 and 2, of which two are stored
				e := a.publish(s.StreamKey).send(11 * time.Second)
				a.power.storage.Store(true)
				e.send(10 * time.Second)
				const published = 6
				a.kill()
				e.stop()
				w.wait(20 * time.Second)
				next := w.start(id.Node(name))
				w.wait(20 * time.Second)
				next.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(61 * time.Second)
				_, line := w.recorded(w.row(s.ID).RecentAssets[0])
				again := 0
				for i, m := range line.Marks {
					msn, gap := line.First+int64(i), line.Lead().Chunks[i].Gap
					switch {
					case gap:
					case m.Generation == 0 && msn > 1:
						t.Errorf("segment %d is of the first generation", msn)
					case m.Generation > 0:
						again++
						if msn < published || msn > published+8 {
							t.Errorf("segment %d is of the second generation, %d were published before", msn, published)
						}
					}
				}
				if again != 3 {
					t.Errorf("%d segments are of the second generation", again)
				}
				if d := line.Duration(); d < 18*time.Second || d > 18*time.Second+50*time.Millisecond {
					t.Errorf("%v are recorded", d)
				}
			})
		})
	}
}
