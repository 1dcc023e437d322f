package broadcast_test

import (
	"fmt"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
)

// TestSlowDatabase has each single call of the database that two broadcasts make take longer than any deadline of an
// encoder, before its work or after it, and then all of them. Nothing may break, and all that was sent is recorded.
func TestSlowDatabase(t *testing.T) {
	t.Parallel()
	var calls int64
	run(t, func(w *world) { calls = slowly(w, slowness{}) })
	if calls < 30 {
		t.Fatalf("only %d calls", calls)
	}
	hows := []slowness{
		{long: 9 * time.Second}, {long: 9 * time.Second, late: true}, // in time for who waits
		{long: 11 * time.Second}, {long: 11 * time.Second, late: true}, // too late for it
	}
	step := int64(len(hows)) // each call is slow in one of these ways
	if testing.Short() {
		step *= 4
	}
	for i, how := range hows {
		for how.call = int64(i + 1); how.call <= calls; how.call += step {
			t.Run(fmt.Sprintf("call %d takes %v, late %v", how.call, how.long, how.late), func(t *testing.T) {
				t.Parallel()
				run(t, func(w *world) { slowly(w, how) })
			})
		}
	}
	for _, long := range []time.Duration{time.Second, 4 * time.Second} {
		t.Run(fmt.Sprintf("all calls take %v", long), func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) { slowly(w, slowness{call: all, long: long}) })
		})
	}
}

// slowly plays two broadcasts with an encoder that calls until it is let in, and gives how many calls were made.
func slowly(w *world, how slowness) (calls int64) {
	n, s := w.start("a"), w.stream(window(60))
	n.power.slow.Store(&how)
	n.power.calls.Store(0)
	persist := func() *encoder {
		for range 60 {
			if e, err := n.admit(s.StreamKey); err == nil {
				return e
			}
			w.wait(2 * time.Second)
		}
		w.t.Fatal("not let in within two minutes")
		return nil
	}
	e := persist().send(20 * time.Second)
	w.wait(7 * time.Second) // in silence
	e.send(5 * time.Second).stop()
	w.wait(3 * time.Second)
	e = persist().send(10 * time.Second)
	w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
	w.wait(time.Second)
	e.stop()
	persist().send(8 * time.Second).stop()
	w.wait(5 * time.Minute)
	calls = n.power.calls.Load()
	if got := n.Panics(); got != 0 {
		w.t.Errorf("%d panics", got)
	}
	row := w.row(s.ID)
	if row.State != live.Idle || row.ActiveAsset != "" || row.EndWanted != "" {
		w.t.Errorf("the stream is left as %+v", row)
	}
	if n := len(row.RecentAssets); n != 2 && how.call != all { // where each call is slow, the end may come in between
		w.t.Errorf("%d broadcasts", n)
	}
	sum := 0.0
	for i, id := range row.RecentAssets {
		a := w.asset(id)
		if a.IsLive || a.Status != asset.Ready {
			w.t.Errorf("asset %d is left %s, live %v", i, a.Status, a.IsLive)
		}
		times, _ := w.recorded(a.ID)
		for _, r := range times {
			if r.Type == "content" {
				sum += r.Duration
			}
		}
	}
	if sent := 43.0; sum < sent-0.5 || sum > sent+0.5 {
		w.t.Errorf("%.2f of %v seconds are recorded", sum, sent)
	}
	return calls
}
