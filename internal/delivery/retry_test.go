package delivery_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/webhook"
)

// TestRetryAfter: an event that is refused comes again when the endpoint wants it, but not sooner than without its word,
// and once more at the end of the day.
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
				if pause := all[1].at.Sub(all[0].at); pause < tt.least-time.Millisecond || pause > tt.most+time.Millisecond {
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
