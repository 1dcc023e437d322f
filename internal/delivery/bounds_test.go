package delivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/webhook"
	"millrace/internal/delivery"
	"millrace/internal/id"
)

// TestBoundOfWaiting: dead endpoints, however many, have a bounded number of deliveries in memory, and share it with
// those that work, which go on at once. What is not in memory comes later, in its order, also when there is less room
// than before.
func TestBoundOfWaiting(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		const one, all, events = 12, 40, 45
		var sender *delivery.Dispatcher
		w.prepare = func(d *delivery.Dispatcher) { sender = d; d.Bound(one, all) }
		var dead atomic.Bool
		dead.Store(true)
		w.respond = func(_ context.Context, g got) (int, error) {
			if dead.Load() && g.address != "http://well" {
				return 0, errors.New("connection refused")
			}
			return 200, nil
		}
		w.hook("http://well")
		w.hook("http://dead0")
		stop := w.run("node")
		s := w.stream()
		told := 1
		change := func() {
			for range events / 3 {
				w.change(s)
				told++
				synctest.Wait()
				if n := len(w.requests("http://well")); n != told {
					w.t.Fatalf("%d of %d events came at once", n, told)
				}
				if n := sender.Waiting(); n > all {
					w.t.Fatalf("%d deliveries are in memory", n)
				}
			}
		}
		change()
		for i := range 4 { // each has less room now
			w.hook(fmt.Sprintf("http://dead%d", i+1))
		}
		change()
		stop()
		stop = w.run("node")
		defer func() { stop() }()
		synctest.Wait()
		change()
		dead.Store(false)
		time.Sleep(6 * time.Hour)
		for i := range 5 {
			address := fmt.Sprintf("http://dead%d", i)
			last := int64(0)
			for _, g := range w.requests(address) {
				if g.number != last && g.number != last+1 && last > 0 {
					w.t.Fatalf("%s: number %d behind %d", address, g.number, last)
				}
				last = g.number
			}
			if last != int64(told) {
				w.t.Errorf("%s: the last one is %d of %d", address, last, told)
			}
		}
	})
}

// TestBoundInFlight: an endpoint has 16 requests at a time, fewer while it does not respond, and all of them again once
// it does.
func TestBoundInFlight(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		flight, most := 0, 0
		var slow atomic.Bool
		slow.Store(true)
		w.respond = func(ctx context.Context, _ got) (int, error) {
			w.mu.Lock()
			flight++
			most = max(most, flight)
			w.mu.Unlock()
			defer func() { w.mu.Lock(); flight--; w.mu.Unlock() }()
			if slow.Load() {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			time.Sleep(time.Second)
			return 200, nil
		}
		since := func() int {
			w.mu.Lock()
			defer w.mu.Unlock()
			n := most
			most = flight
			return n
		}
		w.hook("http://a")
		for range 200 {
			w.stream() // each is a resource of its own: any number could be sent at once
		}
		defer w.run("node")()
		time.Sleep(webhook.Timeout / 2)
		if n := since(); n != 16 {
			w.t.Errorf("%d requests at a time", n)
		}
		time.Sleep(time.Minute)
		since()
		time.Sleep(time.Minute)
		if n := since(); n > 2 {
			w.t.Errorf("%d requests at a time to one that does not respond", n)
		}
		slow.Store(false)
		time.Sleep(3 * time.Hour)
		if n := since(); n != 16 || len(w.deliveries(w.only(), webhook.Waiting)) > 0 {
			w.t.Errorf("%d requests at a time once it responds", n)
		}
	})
}

// brokenOutbox can't read an endpoint.
type brokenOutbox struct {
	webhook.Outbox

	of id.Webhook
}

func (b brokenOutbox) Claim(ctx context.Context, node id.Node, lease time.Duration) ([]webhook.Held, error) {
	held, err := b.Outbox.Claim(ctx, node, lease)
	for i, h := range held {
		if h.ID == b.of {
			held[i] = webhook.Held{Webhook: webhook.Webhook{ID: h.ID}, Err: errors.New("the secret can't be decrypted")}
		}
	}
	return held, err
}

// TestUnreadable: an endpoint that can't be read delays no other, and the log tells of it once.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var text bytes.Buffer
		w.log = slog.New(slog.NewTextHandler(&text, nil))
		h := w.hook("http://broken")
		w.hook("http://well")
		stop := w.runOn(brokenOutbox{w.db, h.ID}, "node")
		w.stream()
		time.Sleep(time.Minute)
		stop()
		if len(w.requests("http://broken")) != 0 || len(w.requests("http://well")) != 1 {
			w.t.Errorf("sent %+v", w.all)
		}
		if strings.Count(text.String(), "\n") != 1 || !strings.Contains(text.String(), string(h.ID)) {
			w.t.Errorf("the log has %s", text.String())
		}
	})
}
