package broadcast_test

import (
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/id"
)

// TestEncoderBack has an encoder away for 2.5 s, which is slate: the last picture for half a second, then one of its
// own. Behind it comes what the encoder has sent from its first key frame on, however long its frames are looked at
// first.
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
					w.wasAway(s.ID, 10*time.Second, 2500*time.Millisecond, at(1+tt.lag, fps))
				})
			})
		}
	}
}

// TestStuckConnection has a connection deliver nothing for 12.5 s, longer than players wait with segments of 10 s, then
// at once what has piled up. A key frame in it is shown where it is not much too late: the next one of an encoder may
// be far.
func TestStuckConnection(t *testing.T) {
	t.Parallel()
	for _, mode := range []live.LatencyMode{live.Low, live.Reduced, live.Standard} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				n, s := w.start("a", slated(&stills{}, nil)), w.stream(func(in *live.CreateInput) {
					in.LatencyMode, in.SlateForStandard, in.ReconnectWindow = mode, true, new(30.0)
				})
				e := n.publish(s.StreamKey)
				e.group = 10 * fps
				e.send(28 * time.Second)
				w.wait(12500 * time.Millisecond)
				e.deliver(12500 * time.Millisecond) // with the key frame of second 40
				e.send(10 * time.Second).stop()
				w.wait(31 * time.Second)
				w.wasAway(s.ID, 28*time.Second, 12500*time.Millisecond, at(2, fps))
			})
		})
	}
}

// wasAway checks what is recorded of a broadcast whose encoder was away for a time after so long.
func (w *world) wasAway(s id.LiveStream, after, away, off time.Duration) {
	w.t.Helper()
	a := w.row(s).RecentAssets[0]
	recordings, _ := w.recorded(a)
	if len(recordings) != 3 {
		w.t.Fatalf("recorded %q", w.times(a))
	}
	for i, want := range []struct {
		kind     string
		at, long time.Duration
	}{{"content", 0, after}, {"slate", after, away}, {"content", after + away, 0}} {
		r := recordings[i]
		late := r.StartedAt.Sub(w.began) - want.at
		more := time.Duration(r.Duration*float64(time.Second)) - want.long
		if r.Type != want.kind || late.Abs() > off || want.long > 0 && more.Abs() > off+10*time.Millisecond {
			w.t.Errorf("recorded %q: number %d is %v late and %v too long", w.times(a), i, late, more)
		}
	}
	w.seamless(w.timeline(a))
}
