package broadcast_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/timeline"
)

// sample is one frame of a recording, on its rendition's clock in seconds.
type sample struct {
	decoded, shown, long float64
	first                bool // of a segment behind a discontinuity
	last                 byte // of its data, which tells pictures apart
}

// samples reads everything that is stored of a rendition, in the order of presentation.
func (w *world) samples(t *timeline.Timeline, l *timeline.Rendition) []sample {
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
				out = append(out, sample{
					float64(at) / scale, float64(at+int64(s.CompositionOffset)) / scale, float64(s.Duration) / scale,
					first, s.Data[len(s.Data)-1],
				})
				at += int64(s.Duration)
				first = false
			}
		}
	}
	slices.SortStableFunc(out, func(a, b sample) int { return cmp.Compare(a.shown, b.shown) })
	return out
}

// TestSlateJoins looks at every frame around slate: each picture, and each frame of sound, is presented until the next
// one is, whatever the encoders before and after make of the order of pictures, and decoding times never go back.
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
				for _, l := range line.Renditions {
					w.joins(l, w.samples(line, l), tt.before == tt.after, float64(tt.before)/fps)
				}
			})
		})
	}
}

// joins checks that no time is without a frame. steady: every frame lasts as long as it is shown, not only the next one
// begins in time; but behind a discontinuity, where the first picture is decoded when it is shown, those behind it are
// decoded in quick succession until they are decoded so many seconds earlier again.
func (w *world) joins(l *timeline.Rendition, have []sample, steady bool, earlier float64) {
	w.t.Helper()
	const tick, step, longest = 1.5 / 48000, 1.0 / fps, 0.331
	picture := l.ID == timeline.MainVideo
	borders, quick := 0, 0.0
	for i := 1; i < len(have); i++ {
		a, b := have[i-1], have[i]
		if b.first {
			borders++
		}
		if a.first && picture && a.decoded == a.shown {
			quick = earlier + tick
		}
		hole := b.shown - a.shown - a.long
		if hole > tick && hole <= quick {
			quick, hole = quick-hole, 0
		}
		if (steady || !picture) && (hole > tick || hole < -tick) {
			w.t.Errorf("%s: a hole of %.4f s at %.4f s", l.ID, hole, b.shown)
		}
		if d := b.shown - a.shown; picture && (d < step-tick || d > longest) || d <= 0 {
			w.t.Errorf("%s: %.4f s after the one at %.4f s", l.ID, d, a.shown)
		}
		if picture && b.decoded < a.decoded || b.shown < b.decoded {
			w.t.Errorf("%s: decoded at %.4f s and shown at %.4f s, after one that is decoded at %.4f s", l.ID,
				b.decoded, b.shown, a.decoded)
		}
	}
	if borders < 3 {
		w.t.Errorf("%s has %d discontinuities", l.ID, borders)
	}
}

// TestLastPictureStands: when nothing comes any more, the last picture stands for half a second, and while sound alone
// comes for as long as it does; where it can't be had it is the last key frame. It is decoded when it is needed only.
func TestLastPictureStands(t *testing.T) {
	t.Parallel()
	const ours, held, slate = 1, 0xee, 0xff
	for name, tt := range map[string]struct {
		fails bool
		play  func(w *world, n *node, key string)
		want  string // kinds of pictures in order, and how long there were of each, in seconds
		asked int
	}{
		"nothing is missing": {false, func(_ *world, n *node, key string) {
			n.publish(key).send(6 * time.Second)
		}, "ours 6.0", 0},
		"nothing comes": {false, func(w *world, n *node, key string) {
			n.publish(key).send(6500 * time.Millisecond).stop()
			w.wait(3 * time.Second)
		}, "ours 6.5, held 0.5, slate", 1},
		"nothing comes, and it can't be had": {true, func(w *world, n *node, key string) {
			n.publish(key).send(6500 * time.Millisecond).stop()
			w.wait(3 * time.Second)
		}, "ours", 1},
		"sound alone": {false, func(_ *world, n *node, key string) {
			e := n.publish(key).send(6500 * time.Millisecond)
			e.noVideo = true
			e.send(4 * time.Second)
			e.noVideo, e.picture = false, 11*fps // it goes on with a key frame
			e.send(4 * time.Second)
		}, "ours 6.5, held 4.5, ours", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				encoder := &stills{fails: tt.fails}
				n, s := w.start("a", slated(encoder, nil)), w.stream(low(60))
				tt.play(w, n, s.StreamKey)
				if len(encoder.lasts) != tt.asked {
					t.Errorf("decoded %d times", len(encoder.lasts))
				}
				w.must(w.streams.Complete(w.ctx, env, w.only(), time.Now()))
				w.wait(30 * time.Second)
				line := w.timeline(w.row(s.ID).RecentAssets[0])
				var kinds []string
				var long float64
				have := w.samples(line, line.Rendition(timeline.MainVideo))
				for i, f := range have {
					if long += f.long; i+1 < len(have) && have[i+1].last == f.last {
						continue
					}
					name := map[byte]string{ours: "ours", held: "held", slate: "slate"}[f.last]
					kinds = append(kinds, fmt.Sprintf("%s %.1f", name, long))
					long = 0
				}
				if got := strings.Join(kinds, ", "); !strings.HasPrefix(got, tt.want) {
					t.Errorf("pictures are %s, want %s", got, tt.want)
				}
			})
		})
	}
}
