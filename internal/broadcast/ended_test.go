package broadcast_test

import (
	"strings"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/id"
)

// TestOwnerDies has the encoder of a node whose process has ended come to another node: it is let in at once, as long
// as nobody has the lock on that node's name, and goes on with the same asset behind a discontinuity. While somebody
// has the lock it waits until the node's row has expired.
func TestOwnerDies(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		locked, sends bool
	}{
		"while its encoder sends": {sends: true},
		"while there is slate":    {},
		"and keeps its lock":      {locked: true, sends: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				_, nodes := w.wired("a", "b")
				a, b := nodes[0], nodes[1]
				s := w.stream(window(60), func(in *live.CreateInput) { in.LatencyMode = live.Low })
				first := a.publish(s.StreamKey).send(11300 * time.Millisecond)
				if !tt.sends {
					first.stop()
					w.wait(2 * time.Second)
				}
				w.wait(100 * time.Millisecond)
				number := following(shown(a, s))
				a.kill()
				if tt.locked {
					w.fleet.lock("a")
				}
				began := time.Now()
				second := b.publish(s.StreamKey)
				took := time.Since(began)
				if late := took > 200*time.Millisecond; late != tt.locked || took > 3500*time.Millisecond {
					t.Errorf("the encoder waited %v for its place", took)
				}
				second.send(9 * time.Second)
				after := shown(b, s)
				if following(after) < number+3 || !strings.Contains(after, "#EXT-X-DISCONTINUITY\n") {
					t.Errorf("behind number %d the other node lists\n%s", number, after)
				}
				second.stop()
				w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
				w.wait(70 * time.Second)
				w.expect(strings.Fields(begun + " disconnected connected recording " + closed)...)
				times, _ := w.recorded(w.row(s.ID).RecentAssets[0])
				if n := len(times); n < 2 || !near(times[n-1].Duration, 9) {
					t.Errorf("recorded %v", times)
				}
			})
		})
	}
}

// lock has somebody have the lock on a node's name.
func (f *fleet) lock(n id.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.ended, n)
}

// TestAfterDeath: the death of a node ends no broadcast, though there is no reconnect window. Its encoder has a minute
// to come to another node, whether that has taken the broadcast up meanwhile or not; what comes later is the next
// broadcast.
func TestAfterDeath(t *testing.T) {
	t.Parallel()
	goesOn := begun + " disconnected connected recording " + closed
	for name, tt := range map[string]struct {
		away   time.Duration // from the death on
		back   bool
		events string
	}{
		"the encoder is back at once":       {back: true, events: goesOn},
		"it is back before it is recovered": {away: 10 * time.Second, back: true, events: goesOn},
		"it is back when it is recovered":   {away: 40 * time.Second, back: true, events: goesOn},
		"it is back too late": {
			away: 65 * time.Second, back: true, events: begun + " " + closed + " " + begun + " " + closed,
		},
		"it stays away": {away: 65 * time.Second, events: begun + " " + closed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				_, nodes := w.wired("a", "b")
				s := w.stream(window(0))
				nodes[0].publish(s.StreamKey).send(11 * time.Second)
				nodes[0].kill()
				w.wait(tt.away)
				if tt.back {
					nodes[1].publish(s.StreamKey).send(9 * time.Second).stop()
				}
				w.wait(10 * time.Second)
				w.expect(strings.Fields(tt.events)...)
				if got := w.row(s.ID); got.Orphaned || got.ActiveAsset != "" {
					t.Errorf("the stream is left as %+v", got)
				}
			})
		})
	}
}
