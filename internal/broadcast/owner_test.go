package broadcast_test

import (
	"errors"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/live"
	"millrace/internal/media/ingest"
)

// TestOneLookForAll counts what a minute of broadcasts costs by the clock: the same for one as for many. A row is read
// by itself when something has changed in it, and here that is the beginning.
func TestOneLookForAll(t *testing.T) {
	t.Parallel()
	for _, many := range []int{1, 12} {
		run(t, func(w *world) {
			n := w.start("a")
			all := make([]*encoder, many)
			for i := range all {
				all[i] = n.publish(w.stream().StreamKey)
			}
			send := func(long time.Duration) {
				for range long / time.Second {
					for _, e := range all {
						e.deliver(time.Second)
					}
					w.wait(time.Second)
				}
			}
			send(20 * time.Second)
			p := n.power
			counters := []interface{ Swap(int64) int64 }{&p.looks, &p.sights, &p.reservations, &p.holds}
			for _, c := range counters {
				c.Swap(0)
			}
			send(time.Minute)
			most := []int64{61, 13, 61, 0}
			for i, name := range []string{
				"looks", "times that it said it is there", "reservations", "rows read one by one",
			} {
				if got := counters[i].Swap(0); got > most[i] {
					t.Errorf("%d broadcasts: %d %s in a minute, at most %d wanted", many, got, name, most[i])
				}
			}
			for _, e := range all {
				e.stop()
			}
			w.wait(61 * time.Second)
		})
	}
}

// TestWishesOfAnotherNode: what the API asks of another node's broadcast, which nobody tells that node, is done within
// two looks.
func TestWishesOfAnotherNode(t *testing.T) {
	t.Parallel()
	for name, wish := range map[string]func(w *world, s live.Stream) error{
		"disable": func(w *world, s live.Stream) error { return w.streams.Disable(w.ctx, env, s.ID, time.Now()) },
		"delete":  func(w *world, s live.Stream) error { return w.streams.Delete(w.ctx, env, s.ID, time.Now()) },
		"another key": func(w *world, s live.Stream) error {
			_, err := w.streams.ResetStreamKey(w.ctx, env, s.ID, time.Now())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				a, s := w.start("a"), w.stream()
				w.start("b") // which is told
				e := a.publish(s.StreamKey)
				gone := e.stream()
				w.wait(11500 * time.Millisecond)
				w.must(wish(w, s))
				w.wait(2 * time.Second)
				if e.dropped() == nil {
					t.Error("the encoder is still there")
				}
				<-gone
			})
		})
	}
}

// TestNodeIsNotRenewed has a node not come round to renew its row, while it streams. Nobody takes its broadcasts before
// it has been away for long, and then it gives them up and writes nothing more; an encoder that comes to another node
// meanwhile is let in.
func TestNodeIsNotRenewed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		unrenewed time.Duration
		moves     bool // the encoder comes to another node
		owner     string
	}{
		"for a moment":                 {unrenewed: 10 * time.Second, owner: "a"},
		"for long":                     {unrenewed: 20 * time.Second, owner: "b"},
		"and the encoder comes to b":   {unrenewed: 5 * time.Second, moves: true, owner: "b"},
		"and the encoder was too fast": {unrenewed: 2 * time.Second, moves: true, owner: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				a, b, s := w.start("a"), w.start("b"), w.stream()
				first := a.publish(s.StreamKey)
				gone := first.stream()
				w.wait(11500 * time.Millisecond)
				a.power.unrenewed.Store(true)
				w.wait(tt.unrenewed)
				if tt.moves {
					e, err := b.admit(s.StreamKey)
					if tt.owner == "a" && !errors.Is(err, ingest.ErrBusy) || tt.owner == "b" && err != nil {
						t.Errorf("the encoder at b: %v", err)
					}
					if err == nil {
						e.send(5 * time.Second).stop()
					}
				}
				a.power.unrenewed.Store(false)
				w.wait(3 * time.Second)
				if got := w.row(s.ID); string(got.Node) != tt.owner {
					t.Errorf("the broadcast is of %s", got.Node)
				}
				if lost := first.dropped(); (lost != nil) != (tt.owner == "b") {
					t.Errorf("the first encoder was dropped: %v", lost)
				}
				if tt.owner == "a" {
					w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
				}
				if err := <-gone; tt.owner == "b" && !errors.Is(err, broadcast.ErrLeaseLost) {
					t.Errorf("the first encoder was dropped: %v", err)
				}
				w.wait(2 * time.Minute)
				row := w.row(s.ID)
				if row.State != live.Idle || len(row.RecentAssets) != 1 {
					t.Fatalf("the stream is left %s, with %v", row.State, row.RecentAssets)
				}
				w.recorded(row.RecentAssets[0])
			})
		})
	}
}

// TestEncoderComesBackAtOnce has an encoder go to another node and back before the first node has looked at the row
// again: what it has in memory is not the broadcast any more.
func TestEncoderComesBackAtOnce(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a, b, s := w.start("a"), w.start("b"), w.stream()
		a.publish(s.StreamKey).send(11 * time.Second).stop()
		w.wait(0)
		first := w.row(s.ID)
		b.publish(s.StreamKey).send(700 * time.Millisecond).stop()
		w.wait(0)
		a.publish(s.StreamKey).send(9 * time.Second).stop()
		w.wait(61 * time.Second)
		row := w.row(s.ID)
		if row.Generation != first.Generation+2 {
			t.Errorf("generation %d after %d", row.Generation, first.Generation)
		}
		ended(w, s.ID, 1, []time.Duration{11 * time.Second, 700 * time.Millisecond, 9 * time.Second})
	})
}

// TestRestartedNode takes its own broadcasts up again at once, beside another node, though the row of the process
// before is still valid; what that one still says counts for nothing.
func TestRestartedNode(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a, s := w.start("a"), w.stream()
		w.start("b")
		e := a.publish(s.StreamKey).send(11 * time.Second)
		before := w.row(s.ID)
		a.kill()
		e.stop()
		next := w.start("a")
		got := w.row(s.ID)
		if got.Node != "a" || got.Run == before.Run || got.Generation != before.Generation+1 {
			t.Errorf("led by %v, generation %d", got.Owner, got.Generation)
		}
		late := live.NewBroadcasts(w.db.LiveStreams()) // with a database that it reaches late
		if _, err := late.End(w.ctx, s.ID, before.Writer(), live.EndWindow, time.Now()); err == nil {
			t.Error("the process before has ended the broadcast")
		}
		next.publish(s.StreamKey).send(10 * time.Second).stop()
		w.wait(61 * time.Second)
		if got = w.row(s.ID); len(got.RecentAssets) != 1 {
			t.Errorf("the stream is left as %+v", got)
		}
	})
}
