package bridge_test

import (
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
)

func TestReconnectInsideTheWindow(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream()
		n.publish(s.StreamKey).send(10 * time.Second).stop()
		w.wait(20 * time.Second)
		if got := w.row(s.ID); got.State != live.Reconnecting || got.Status() != live.StatusActive {
			t.Errorf("the stream is %s", got.State)
		}
		n.publish(s.StreamKey).send(10 * time.Second).stop()
		w.wait(61 * time.Second)
		a := w.row(s.ID).RecentAssets[0]
		times, line := w.recorded(a)
		if len(times) != 2 || w.since(times[0].StartedAt) != 0 || w.since(times[1].StartedAt) != 30*time.Second {
			t.Errorf("recording times %+v", times)
		}
		discontinuities := 0
		for _, m := range line.Marks {
			if m.Discontinuity {
				discontinuities++
			}
		}
		if discontinuities != 1 || line.Duration() < 19*time.Second || line.Duration() > 21*time.Second {
			t.Errorf("%d discontinuities in %v", discontinuities, line.Duration())
		}
		w.finish(a)
		w.expect("connected", "asset.created", "recording", "active", "asset.ready", "disconnected", "connected", "disconnected",
			"idle", "asset.live_stream_completed")
		if got := w.asset(a); got.Status != asset.Ready || got.IsLive || got.Facts.Duration < 19 {
			t.Errorf("the asset is %s, %+v", got.Status, got.Facts)
		}
	})
}
