package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/webhook"
	"millrace/internal/id"
)

// awayOutbox gives no leases while it is away.
type awayOutbox struct {
	webhook.Outbox

	away *atomic.Bool
}

func (a awayOutbox) Claim(ctx context.Context, node id.Node, lease time.Duration) ([]webhook.Held, error) {
	if a.away.Load() {
		return nil, errors.New("the store is away")
	}
	return a.Outbox.Claim(ctx, node, lease)
}

// TestNoLease: without a lease nothing is sent, whatever waits, and it is once there is one again.
func TestNoLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.hook("http://a")
		var away atomic.Bool
		var respond atomic.Int64
		respond.Store(503)
		w.respond = func(context.Context, got) (int, error) { return int(respond.Load()), nil }
		defer w.runOn(awayOutbox{w.db, &away}, "node")()
		w.stream()
		synctest.Wait()
		away.Store(true)
		time.Sleep(time.Minute)
		tried := len(w.requests("http://a"))
		time.Sleep(time.Hour)
		if n := len(w.requests("http://a")); n != tried || tried > 3 {
			w.t.Errorf("%d requests, then %d without a lease", tried, n-tried)
		}
		respond.Store(200)
		away.Store(false)
		time.Sleep(time.Minute)
		if n := len(w.requests("http://a")); n != tried+1 {
			w.t.Errorf("%d requests once there is a lease", n-tried)
		}
	})
}

// TestLeaseOfAnother: what a node remembers of an endpoint is worth nothing once another one had it: events that were
// delivered meanwhile are not sent again behind their successors.
func TestLeaseOfAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.hook("http://a")
		var away atomic.Bool
		var respond atomic.Int64
		respond.Store(503)
		w.respond = func(context.Context, got) (int, error) { return int(respond.Load()), nil }
		stopFirst := w.runOn(awayOutbox{w.db, &away}, "first")
		defer stopFirst()
		s := w.stream()
		w.change(s)
		synctest.Wait() // the first event waits in the node's memory
		away.Store(true)
		time.Sleep(time.Minute)
		respond.Store(200)
		stop := w.run("second")
		time.Sleep(time.Minute)
		w.change(s)
		time.Sleep(time.Second)
		stop()
		away.Store(false)
		time.Sleep(time.Hour)
		w.change(s)
		time.Sleep(time.Minute)
		text := ""
		for _, g := range w.requests("http://a") {
			if g.number > 1 || g.attempts > 0 {
				text += fmt.Sprint(g.number)
			}
		}
		if text[len(text)-4:] != "1234" {
			w.t.Errorf("sent %s", text)
		}
	})
}

// TestDisabledMeanwhile: an event whose first attempt is under way while its endpoint is disabled waits for it to be
// enabled again, and is sent then. That the attempt fails later does not bring it back.
func TestDisabledMeanwhile(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		h := w.hook("http://a")
		var slow atomic.Bool
		slow.Store(true)
		w.respond = func(ctx context.Context, _ got) (int, error) {
			if slow.Load() {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 200, nil
		}
		defer w.run("node")()
		s := w.stream()
		synctest.Wait()
		slow.Store(false)
		for _, enabled := range []bool{false, true} {
			_, err := w.hooks.Patch(w.t.Context(), env, h.ID, webhook.PatchInput{Enabled: &enabled}, time.Now())
			w.must(err)
			synctest.Wait()
		}
		time.Sleep(time.Minute) // the attempt is broken off
		w.change(s)
		time.Sleep(time.Minute)
		if n := len(w.deliveries(h.ID, webhook.Waiting)); n != 0 {
			w.t.Errorf("%d events wait for ever", n)
		}
		text := ""
		for _, g := range w.requests("http://a") {
			text += fmt.Sprintf("%d/%d ", g.number, g.attempts)
		}
		list := w.deliveries(h.ID, webhook.Delivered)
		if text != "1/0 1/0 2/0 " || len(list) != 2 || len(list[1].Attempts) != 2 {
			w.t.Errorf("sent %s, delivered %+v", text, list)
		}
	})
}

// slowOutbox takes its time to give leases.
type slowOutbox struct{ webhook.Outbox }

func (s slowOutbox) Claim(ctx context.Context, node id.Node, lease time.Duration) ([]webhook.Held, error) {
	held, err := s.Outbox.Claim(ctx, node, lease)
	time.Sleep(8 * time.Second)
	return held, err
}

// TestLateRound: an endpoint has all the time that it may take, also where a lease is nearly over because it is
// prolonged late.
func TestLateRound(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		h := w.hook("http://a")
		w.respond = func(ctx context.Context, g got) (int, error) {
			if g.attempts == 0 {
				return 503, nil // the next one is at a time of its own
			}
			select {
			case <-time.After(webhook.Timeout - time.Millisecond):
				return 200, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		defer w.runOn(slowOutbox{w.db}, "node")()
		for range 30 {
			w.stream()
			time.Sleep(1700 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		sent := w.deliveries(h.ID, webhook.Delivered)
		for _, one := range sent {
			if len(one.Attempts) != 2 {
				w.t.Errorf("event %d: %+v", one.Sequence, one.Attempts)
			}
		}
		if len(sent) != 30 {
			w.t.Errorf("%d were delivered", len(sent))
		}
	})
}
