package delivery_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/webhook"
)

// TestRetryAfter: an event that is refused comes again when the endpoint wants it, but not sooner than without its
// word, and once more at the end of the day.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ asks, least, most time.Duration }{
		"nothing":       {0, 3750 * time.Millisecond, 6250 * time.Millisecond},
		"sooner":        {time.Second, 3750 * time.Millisecond, 6250 * time.Millisecond},
		"later":         {10 * time.Minute, 10 * time.Minute, 10 * time.Minute},
		"after the day": {48 * time.Hour, webhook.Patience, webhook.Patience},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.least >= webhook.Patience {
				long(t)
			}
			bubble(t, func(w *world) {
				h := w.hook("http://a")
				w.asks = tt.asks
				w.respond = func(_ context.Context, g got) (int, error) {
					if g.attempts == 0 || tt.asks > webhook.Patience {
						return 503, nil
					}
					return 200, nil
				}
				defer w.run("node")()
				w.stream()
				time.Sleep(tt.most + time.Second)
				synctest.Wait() // for what came of it to be recorded
				all := w.requests("http://a")
				if len(all) != 2 {
					w.t.Fatalf("%d requests", len(all))
				}
				// SQLite keeps milliseconds.
				pause := all[1].at.Sub(all[0].at)
				if pause < tt.least-time.Millisecond || pause > tt.most+time.Millisecond {
					w.t.Errorf("the second attempt came after %v", pause)
				}
				state := webhook.Delivered
				if tt.asks > webhook.Patience {
					state = webhook.Failed
				}
				if n := len(w.deliveries(h.ID, state)); n != 1 {
					w.t.Errorf("%d are %s", n, state)
				}
			})
		})
	}
}

// TestTimeout: an endpoint may take 5 seconds to respond; what comes later is no success, and the event comes again.
func TestTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		h := w.hook("http://a")
		takes := []time.Duration{5*time.Second + time.Millisecond, 5*time.Second - time.Millisecond}
		w.respond = func(ctx context.Context, g got) (int, error) {
			select {
			case <-time.After(takes[g.attempts]):
				return 200, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		defer w.run("node")()
		w.stream()
		time.Sleep(time.Minute)
		synctest.Wait()
		list := w.deliveries(h.ID, webhook.Delivered)
		if len(list) != 1 || len(list[0].Attempts) != 2 {
			w.t.Fatalf("delivered %+v", list)
		}
		late, soon := list[0].Attempts[0], list[0].Attempts[1]
		if late.Status != 0 || late.Duration != 5*time.Second || late.Error == "" {
			w.t.Errorf("the late one is %+v", late)
		}
		if soon.Status != 200 || soon.Duration != takes[1] {
			w.t.Errorf("the one in time is %+v", soon)
		}
	})
}

// TestPatienceOverRestart: the 24 hours of an event count from its first attempt, whatever process made that.
func TestPatienceOverRestart(t *testing.T) {
	t.Parallel()
	long(t)
	bubble(t, func(w *world) {
		h := w.hook("http://a")
		s, other := w.stream(), w.stream()
		var tries []time.Time
		w.respond = func(_ context.Context, g got) (int, error) {
			if g.resource != string(s) || g.number != 1 {
				return 200, nil
			}
			tries = append(tries, time.Now())
			return 503, nil
		}
		stop := w.run("node")
		time.Sleep(20 * time.Hour)
		stop()
		defer w.run("node")()
		w.change(other) // succeeds, so that the endpoint is not disabled
		w.change(s)
		time.Sleep(5 * time.Hour)
		synctest.Wait()
		tried := tries[len(tries)-1].Sub(tries[0])
		if tried < webhook.Patience-time.Millisecond || tried > webhook.Patience+time.Second {
			w.t.Errorf("it was given up after %v", tried)
		}
		if n := len(w.deliveries(h.ID, webhook.Failed)); n != 1 {
			w.t.Errorf("%d are failed", n)
		}
		if all := w.requests("http://a"); all[len(all)-1].resource != string(s) || all[len(all)-1].number != 2 {
			w.t.Errorf("the last one is %+v", all[len(all)-1])
		}
	})
}
