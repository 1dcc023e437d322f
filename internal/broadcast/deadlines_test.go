package broadcast_test

import (
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
)

// situation is a node with one stream's broadcast, and its encoder where there is one.
type situation struct {
	w *world
	n *node
	s live.Stream
	e *encoder
}

// TestDeadlines has everything that can end a broadcast, or its encoder's place in it, meet everything that a broadcast
// can be in, the states that last only for moments among them. Nothing panics, and all is ended afterwards.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	publish := func(x *situation) *encoder {
		x.e = x.n.publish(x.s.StreamKey)
		return x.e
	}
	states := map[string]func(x *situation){
		"expected":     func(x *situation) { x.w.must(broadcast.Expect(x.w.ctx, x.n.Service, x.s.StreamKey)) },
		"connected":    func(x *situation) { publish(x) },
		"sending":      func(x *situation) { publish(x).send(5 * time.Second).stream() },
		"silent":       func(x *situation) { publish(x).send(5 * time.Second); x.w.wait(6 * time.Second) },
		"away":         func(x *situation) { publish(x).send(5 * time.Second).stop() },
		"left at once": func(x *situation) { publish(x).stop() },
		"taken over":   func(x *situation) { publish(x).send(5 * time.Second); x.n.kill(); x.n = x.w.start("a") },
		"being stored": func(x *situation) { publish(x).send(5 * time.Second); x.n.power.storage.Store(true); x.end() },
		"not to be had": func(x *situation) {
			publish(x).send(5 * time.Second)
			x.n.power.database.Store(true)
			x.w.wait(11 * time.Second)
		},
	}
	deadlines := map[string]func(x *situation){
		"silence":              func(x *situation) { x.w.wait(6 * time.Second) },
		"no place any more":    func(x *situation) { x.w.wait(6 * time.Minute) },
		"the window":           func(x *situation) { x.w.wait(31 * time.Second) },
		"the longest duration": func(x *situation) { x.w.wait(121 * time.Second) },
		"complete":             func(x *situation) { x.end() },
		"disable":              func(x *situation) { x.w.must(x.w.streams.Disable(x.w.ctx, env, x.s.ID, time.Now())) },
		"delete":               func(x *situation) { x.w.must(x.w.streams.Delete(x.w.ctx, env, x.s.ID, time.Now())) },
		"another key": func(x *situation) {
			_, err := x.w.streams.ResetStreamKey(x.w.ctx, env, x.s.ID, time.Now())
			x.w.must(err)
		},
		"shutdown": func(x *situation) { x.n.end(); x.n = x.w.start("a") },
		"crash":    func(x *situation) { x.n.kill(); x.n = x.w.start("a") },
		"the database is away for a minute": func(x *situation) {
			x.n.power.database.Store(true)
			x.w.wait(time.Minute)
			x.n.power.database.Store(false)
		},
	}
	for state, bring := range states {
		for deadline, pass := range deadlines {
			t.Run(state+"/"+deadline, func(t *testing.T) {
				t.Parallel()
				run(t, func(w *world) {
					w.journals(t)
					x := &situation{w: w, n: w.start("a"), s: w.stream(window(30), longest(120))}
					bring(x)
					pass(x)
					x.check()
				})
			})
		}
	}
}

// end completes the broadcast.
func (s *situation) end() {
	if err := s.w.streams.Complete(s.w.ctx, env, s.s.ID, time.Now()); err != nil && !fault.Is(err, fault.Conflict) {
		s.w.t.Error(err)
	}
}

// check gives the encoder time to go, everything back to the node, and checks what is left.
func (s *situation) check() {
	w, t := s.w, s.w.t
	s.n.power.storage.Store(false)
	s.n.power.database.Store(false)
	w.wait(time.Second)
	switch {
	case s.e == nil:
	case s.e.quit != nil:
		s.e.hangUp()
	default:
		s.e.stop()
	}
	w.wait(15 * time.Minute)
	if got := s.n.Panics(); got != 0 {
		t.Errorf("%d panics", got)
	}
	row, err := w.db.LiveStreams().Find(w.ctx, s.s.ID)
	if fault.Is(err, fault.NotFound) {
		return
	}
	w.must(err)
	if row.ActiveAsset != "" || row.EndWanted != "" || row.State != live.Idle && row.State != live.Disabled {
		t.Errorf("the stream is left as %+v", row)
	}
	for _, id := range row.RecentAssets {
		a := w.asset(id)
		if a.IsLive || a.Status == asset.Preparing || (a.Status == asset.Ready) != (a.Entries > 0) {
			t.Errorf("an asset is left %s, live %v, with %d entries", a.Status, a.IsLive, a.Entries)
		}
	}
}
