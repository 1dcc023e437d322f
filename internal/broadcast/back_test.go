package broadcast_test

import (
	"math"
	"testing"
	"time"

	"millrace/internal/control/live"
)

// TestEncoderBack has an encoder away for 2.5 s. The last picture stands for half a second, slate follows for two more,
// and then what the encoder has sent from its first key frame on, however long its frames are looked at first.
func TestEncoderBack(t *testing.T) {
	t.Parallel()
	for _, mode := range []live.LatencyMode{live.Low, live.Reduced, live.Standard} {
		for kind, tt := range map[string]struct {
			noAudio bool
			lag     int
		}{
			"picture and sound": {},
			"pictures":          {noAudio: true},
			"reordered":         {lag: 2}, // and presented as much later
		} {
			t.Run(string(mode)+", "+kind, func(t *testing.T) {
				t.Parallel()
				run(t, func(w *world) {
					n, s := w.start("a", slated(&stills{}, nil)), w.stream(func(in *live.CreateInput) {
						in.LatencyMode, in.SlateForStandard, in.ReconnectWindow = mode, true, new(30.0)
					})
					for range 2 {
						e := n.publish(s.StreamKey)
						e.noAudio, e.lag = tt.noAudio, tt.lag
						e.send(10 * time.Second).stop()
						w.wait(2500 * time.Millisecond)
					}
					w.wait(28 * time.Second)
					a := w.row(s.ID).RecentAssets[0]
					recordings, _ := w.recorded(a)
					want := []struct {
						kind    string
						seconds float64
						at      time.Duration
					}{
						{"content", 10.5, 0},
						{"slate", 2, 10500 * time.Millisecond},
						{"content", 10.5, 12500 * time.Millisecond},
					}
					off := at(1+tt.lag, fps)
					if len(recordings) != len(want) {
						t.Fatalf("recorded %q", w.times(a))
					}
					for i, r := range recordings {
						late := r.StartedAt.Sub(w.began) - want[i].at
						more := r.Duration - want[i].seconds
						if r.Type != want[i].kind || late.Abs() > off || math.Abs(more) > off.Seconds()+0.01 {
							t.Errorf("recorded %q: number %d is %v and %.2f s off", w.times(a), i, late, more)
						}
					}
					w.seamless(w.timeline(a))
				})
			})
		}
	}
}
