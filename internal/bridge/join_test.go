package bridge_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/timeline"
)

// sample is one frame of a recording, on its lane's clock in seconds.
type sample struct {
	decoded, shown, long float64
	first                bool // of a segment behind a discontinuity
}

// samples reads everything that is stored of a lane, in the order of presentation.
func (w *world) samples(t *timeline.Timeline, l *timeline.Lane) []sample {
	w.t.Helper()
	var out []sample
	scale := float64(l.Timescale)
	for i, c := range l.Chunks {
		w.objects.mu.Lock()
		fragments, err := cmaf.ParseFragments(w.objects.data[c.Object])
		w.objects.mu.Unlock()
		w.must(err)
		first := t.Marks[i].Discontinuity
		for _, f := range fragments {
			at := int64(f.BaseMediaDecodeTime)
			for _, s := range f.Samples {
				out = append(out, sample{float64(at) / scale, float64(at+int64(s.CompositionOffset)) / scale, float64(s.Duration) / scale, first})
				at += int64(s.Duration)
				first = false
			}
		}
	}
	slices.SortStableFunc(out, func(a, b sample) int { return cmp.Compare(a.shown, b.shown) })
	return out
}

// TestSlateJoins looks at every frame around slate: each picture, and each frame of sound, is presented until the next one is, whatever
// the encoders before and after make of the order of pictures, and decoding times never go back.
func TestSlateJoins(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before, after int // by how many frames pictures are presented after they are decoded
		silent        bool
	}{{0, 0, false}, {1, 1, false}, {2, 2, false}, {2, 2, true}, {0, 2, false}, {2, 0, false}, {3, 1, true}} {
		t.Run(fmt.Sprintf("%d and %d frames, silent %t", tt.before, tt.after, tt.silent), func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				n, s := w.start("a", slated(&stills{}, nil)), w.stream(low(20))
				for _, lag := range []int{tt.before, tt.after} {
					e := n.publish(s.StreamKey)
					e.lag, e.noAudio = lag, tt.silent
					e.send(6 * time.Second).stop()
					w.wait(8 * time.Second)
				}
				w.wait(20 * time.Second)
				line := w.timeline(w.row(s.ID).RecentAssets[0])
				w.seamless(line)
				for _, l := range line.Lanes {
					w.joins(l, w.samples(line, l), tt.before == tt.after)
				}
			})
		})
	}
}

// joins checks that no time is without a frame. steady: every frame lasts as long as it is shown, not only the next one begins in time.
func (w *world) joins(l *timeline.Lane, have []sample, steady bool) {
	w.t.Helper()
	const tick, step, longest = 1.5 / 48000, 1.0 / fps, 0.331
	picture := l.ID == timeline.MainVideo
	borders := 0
	for i := 1; i < len(have); i++ {
		a, b := have[i-1], have[i]
		if b.first {
			borders++
		}
		if hole := b.shown - a.shown - a.long; (steady || !picture) && (hole > tick || hole < -tick) {
			w.t.Errorf("%s: a hole of %.4f s at %.4f s", l.ID, hole, b.shown)
		}
		if d := b.shown - a.shown; picture && (d < step-tick || d > longest) || d <= 0 {
			w.t.Errorf("%s: %.4f s after the one at %.4f s", l.ID, d, a.shown)
		}
		if picture && b.decoded < a.decoded || b.shown < b.decoded {
			w.t.Errorf("%s: decoded at %.4f s and shown at %.4f s, after one that is decoded at %.4f s", l.ID, b.decoded, b.shown, a.decoded)
		}
	}
	if borders < 3 {
		w.t.Errorf("%s has %d discontinuities", l.ID, borders)
	}
}
