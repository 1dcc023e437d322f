package broadcast_test

import (
	"context"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/fault"
)

// TestRungsOfWhatIsLost makes rungs of a broadcast on a node that another one has taken it over from: what the source
// has there may be kept only while the node is sure that it stays, which at the end it does.
func TestRungsOfWhatIsLost(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a, s := w.start("a"), w.stream(window(0))
		old := a.publish(s.StreamKey)
		gone := old.stream()
		w.wait(11 * time.Second)
		await := broadcast.AwaitStored(a.Service, s.ID)
		w.must(await(w.ctx, 0))
		soon, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		if err := await(soon, 5); err == nil {
			t.Error("what is not stored yet is kept")
		}
		a.power.database.Store(true)
		b := w.start("b")
		w.wait(20 * time.Second)
		if err := await(w.ctx, 0); err == nil {
			t.Error("kept without a lease")
		}
		other := b.publish(s.StreamKey).send(10 * time.Second)
		a.power.database.Store(false)
		if err := await(w.ctx, 0); !fault.Is(err, fault.Conflict) {
			t.Errorf("on the node that has lost it: %v", err)
		}
		<-gone
		await = broadcast.AwaitStored(b.Service, s.ID)
		w.must(await(w.ctx, 0))
		other.stop()
		w.wait(10 * time.Second)
		w.must(await(w.ctx, 0)) // the end is told, and the lease is nobody's
	})
}
