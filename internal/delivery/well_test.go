package delivery_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/webhook"
	"millrace/internal/delivery"
)

// TestWellAgain: once an endpoint takes an event after it has failed for hours, however it failed, all that waits for
// it is sent at once, and not after the hour that each of them was to wait.
func TestWellAgain(t *testing.T) {
	t.Parallel()
	const lastFor = 10 * time.Hour
	for name, fail := range map[string]func(ctx context.Context) (int, error){
		"it refused":         func(context.Context) (int, error) { return 503, nil },
		"it did not respond": func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				h := w.hook("http://a")
				var well atomic.Bool
				w.respond = func(ctx context.Context, _ got) (int, error) {
					if well.Load() {
						return 200, nil
					}
					return fail(ctx)
				}
				defer w.run("node")()
				const streams = 40
				for range streams {
					w.change(w.stream())
				}
				time.Sleep(lastFor)
				well.Store(true)
				w.stream()
				time.Sleep(2 * webhook.Timeout) // until those under way have ended
				synctest.Wait()
				if n := len(w.deliveries(h.ID, webhook.Delivered)); n != 2*streams+1 {
					w.t.Errorf("%d of %d events were delivered at once", n, 2*streams+1)
				}
			})
		})
	}
}

// TestWellAgainUnderWay: so is an event whose attempt had begun before, and fails.
func TestWellAgainUnderWay(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		h := w.hook("http://a")
		begins, well := make(chan struct{}), false
		w.respond = func(ctx context.Context, _ got) (int, error) {
			if well {
				return 200, nil
			}
			select {
			case begins <- struct{}{}:
			case <-ctx.Done():
			}
			<-ctx.Done()
			return 0, ctx.Err()
		}
		defer w.run("node")()
		w.stream()
		for range 15 { // hours, about
			<-begins
		}
		time.Sleep(time.Second)
		well = true
		w.stream()
		time.Sleep(webhook.Timeout + time.Second)
		synctest.Wait()
		if n := len(w.deliveries(h.ID, webhook.Delivered)); n != 2 {
			w.t.Errorf("%d of 2 events were delivered at once", n)
		}
	})
}

// TestWellAgainAfterRestart: what a process has not read when the endpoint is well again, as there was no room for it,
// does not wait for its time either.
func TestWellAgainAfterRestart(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.hook("http://a")
		var well atomic.Bool
		w.respond = func(context.Context, got) (int, error) {
			if well.Load() {
				return 200, nil
			}
			return 503, nil
		}
		stop := w.run("node")
		const streams = 40
		for range streams {
			w.stream()
		}
		time.Sleep(10 * time.Hour)
		stop()
		well.Store(true)
		tried := len(w.requests("http://a"))
		w.prepare = func(d *delivery.Dispatcher) { d.Bound(streams/4, streams/4) }
		defer w.run("node")()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		all := w.requests("http://a")[tried:]
		if len(all) != streams || all[len(all)-1].at.Sub(all[0].at) > time.Minute {
			w.t.Errorf("%d of %d events within %v", len(all), streams, all[len(all)-1].at.Sub(all[0].at))
		}
	})
}

// TestRefusedBesideOthers: an event that is refused while others are taken is tried as often as without them.
func TestRefusedBesideOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.hook("http://a")
		bad, good := w.stream(), w.stream()
		w.respond = func(_ context.Context, g got) (int, error) {
			if g.resource == string(bad) {
				return 500, nil
			}
			return 200, nil
		}
		defer w.run("node")()
		for range 600 {
			w.change(good)
			time.Sleep(time.Second)
		}
		tried := 0
		for _, g := range w.requests("http://a") {
			if g.resource == string(bad) {
				tried++
			}
		}
		if tried < 6 || tried > 8 { // 7 by its pauses, without their spread
			w.t.Errorf("it was tried %d times in ten minutes: %s", tried, fmt.Sprint(w.requests("http://a")))
		}
	})
}

// TestRetryAfterOfWell: an event that the endpoint wants later comes then, though others are taken meanwhile.
func TestRetryAfterOfWell(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.hook("http://a")
		bad, good := w.stream(), w.stream()
		w.asks = time.Minute
		w.respond = func(_ context.Context, g got) (int, error) {
			if g.resource == string(bad) && g.attempts == 0 {
				return 429, nil
			}
			return 200, nil
		}
		defer w.run("node")()
		time.Sleep(40 * time.Second)
		w.change(good)
		time.Sleep(19 * time.Second)
		count := func() (n int) {
			for _, g := range w.requests("http://a") {
				if g.resource == string(bad) {
					n++
				}
			}
			return n
		}
		if n := count(); n != 1 {
			w.t.Errorf("%d attempts before the minute was over", n)
		}
		time.Sleep(2 * time.Second)
		if n := count(); n != 2 {
			w.t.Errorf("%d attempts when it was", n)
		}
	})
}
