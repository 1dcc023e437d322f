package delivery_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
)

// oneByOne is an outbox whose single events, which are read to be sent, come by a function.
type oneByOne struct {
	webhook.Outbox

	read func() error
}

func (o oneByOne) ListEvents(ctx context.Context, q event.Query) ([]event.Event, error) {
	if q.Limit == 1 {
		if err := o.read(); err != nil {
			return nil, err
		}
	}
	return o.Outbox.ListEvents(ctx, q)
}

// TestSlowStore: how long the store takes to give an event is none of the endpoint's time, and not in what is recorded
// of the attempt.
func TestSlowStore(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		const reads, takes = 10 * time.Second, webhook.Timeout - time.Millisecond
		h := w.hook("http://a")
		w.respond = func(ctx context.Context, _ got) (int, error) {
			select {
			case <-time.After(takes):
				return 200, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		slow := func() error { time.Sleep(reads); return nil }
		defer w.runOn(oneByOne{w.db, slow}, "node")()
		began := time.Now()
		w.stream()
		time.Sleep(reads + takes)
		synctest.Wait()
		list := w.deliveries(h.ID, webhook.Delivered)
		if len(list) != 1 || len(list[0].Attempts) != 1 {
			w.t.Fatalf("delivered %+v", list)
		}
		a := list[0].Attempts[0]
		if a.Duration != takes || a.At.Sub(began) < reads-time.Millisecond {
			w.t.Errorf("the attempt began after %v and took %v", a.At.Sub(began), a.Duration)
		}
	})
}

// TestLeaseOverWhilePrepared: nothing is sent where the lease has ended while the event was read.
func TestLeaseOverWhilePrepared(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.hook("http://a")
		var away atomic.Bool
		read := func() error {
			away.Store(true)
			time.Sleep(30 * time.Second)
			return nil
		}
		defer w.runOn(awayOutbox{oneByOne{w.db, read}, &away}, "node")()
		w.stream()
		time.Sleep(time.Minute)
		if n := len(w.requests("http://a")); n != 0 {
			w.t.Errorf("%d requests without a lease", n)
		}
	})
}

// TestOneWarning: while the store gives no events the log has a line in a minute for each endpoint, with how many
// attempts it stands for, and not one for each attempt.
func TestOneWarning(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var text bytes.Buffer
		w.log = slog.New(slog.NewTextHandler(&text, nil))
		a, b := w.hook("http://a"), w.hook("http://b")
		failing := func() error { return errors.New("the store is away") }
		stop := w.runOn(oneByOne{w.db, failing}, "node")
		for range 10 {
			w.stream()
		}
		time.Sleep(3*time.Minute - time.Second)
		stop()
		for _, h := range []webhook.Webhook{a, b} {
			if n := strings.Count(text.String(), "webhook_id="+string(h.ID)); n != 3 {
				w.t.Errorf("%d lines about one endpoint in three minutes", n)
			}
		}
		if lines := strings.Count(text.String(), "\n"); lines != 6 || strings.Count(text.String(), "not_logged=") != 4 {
			w.t.Errorf("the log has %d lines: %s", lines, &text)
		}
	})
}
