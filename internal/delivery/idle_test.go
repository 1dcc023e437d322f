package delivery_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/webhook"
	"millrace/internal/id"
)

// countingOutbox counts how often leases are asked for.
type countingOutbox struct {
	webhook.Outbox

	claims *atomic.Int64
}

func (c countingOutbox) Claim(ctx context.Context, node id.Node, lease time.Duration) ([]webhook.Held, error) {
	c.claims.Add(1)
	return c.Outbox.Claim(ctx, node, lease)
}

// TestNoEndpoint: where there is nobody to send to, events cause at most 20 looks a second. Who comes then gets every
// event from then on, the first one within 50 ms, and the next one at once.
func TestNoEndpoint(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var claims atomic.Int64
		defer w.runOn(countingOutbox{w.db, &claims}, "node")()
		synctest.Wait()
		claims.Store(0)
		for range 200 {
			w.stream()
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		if n := claims.Load(); n < 3 || n > 4 {
			w.t.Errorf("%d looks in 200 ms with an event each", n)
		}
		w.hook("http://a")
		first := w.stream()
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		second := w.stream()
		synctest.Wait()
		var got []id.LiveStream
		for _, r := range w.requests("http://a") {
			got = append(got, id.LiveStream(r.resource))
		}
		if len(got) != 2 || got[0] != first || got[1] != second {
			w.t.Errorf("the endpoint got %v, want %s and %s", got, first, second)
		}
	})
}
