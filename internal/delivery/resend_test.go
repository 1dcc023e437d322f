package delivery_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/delivery"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// numbers are those of the events of a resource that were sent to an address, in their order.
func (w *world) numbers(address string, s id.LiveStream) (all []int64) {
	for _, g := range w.requests(address) {
		if g.resource == string(s) {
			all = append(all, g.number)
		}
	}
	return all
}

// firstEvent is the ID of the first event of a resource that was sent.
func (w *world) firstEvent(s id.LiveStream) string {
	w.t.Helper()
	for _, g := range w.requests("http://a") {
		if g.resource == string(s) && g.number == 1 {
			return g.id
		}
	}
	w.t.Fatal("it was not sent")
	return ""
}

// TestSkip: an event that the endpoint never takes holds back its resource until it is skipped, also by a process that
// does not send to the endpoint. Then the next one comes, and the skipped one never again.
func TestSkip(t *testing.T) {
	t.Parallel()
	for name, elsewhere := range map[string]bool{"by the one that sends": false, "by another process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.SQLite(t)
			dbtest.Fill(t, url)
			synctest.Test(t, func(t *testing.T) {
				open := func() *db.DB {
					d, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
					if err != nil {
						t.Fatal(err)
					}
					return d
				}
				d, other := open(), open()
				defer func() { _, _ = d.Close(), other.Close() }()
				w := newWorld(t, d)
				h, s := w.hook("http://a"), w.stream()
				w.respond = func(_ context.Context, g got) (int, error) {
					if g.number == 1 {
						return 500, nil
					}
					return 200, nil
				}
				defer w.run("node")()
				w.change(s)
				w.change(s)
				time.Sleep(3 * time.Hour)
				before := len(w.numbers("http://a", s))
				hooks, soon := w.hooks, time.Duration(0)
				if elsewhere {
					hooks, soon = webhook.New(other, nil), 5*time.Second // until the store is looked at again
				}
				skipped, err := hooks.Skip(t.Context(), env, h.ID, w.firstEvent(s))
				w.must(err)
				if skipped.State != webhook.Skipped || len(skipped.Attempts) != before || skipped.Reason != "" {
					t.Errorf("skipped %+v", skipped)
				}
				time.Sleep(soon)
				synctest.Wait()
				if sent := w.numbers("http://a", s)[before:]; !slices.Equal(sent, []int64{2, 3}) {
					t.Errorf("once it was skipped %v were sent", sent)
				}
				time.Sleep(3 * time.Hour)
				if sent := w.numbers("http://a", s)[before:]; !slices.Equal(sent, []int64{2, 3}) {
					t.Errorf("hours later %v", sent)
				}
				if _, err = hooks.Skip(t.Context(), env, h.ID, w.firstEvent(s)); !fault.Is(err, fault.Conflict) {
					t.Errorf("skipped again: %v", err)
				}
			})
		})
	}
}

// TestSkipUnderWay: an event that is skipped while it is being sent is not sent again when that fails, and is delivered
// when it succeeds. The next one follows then, and not before.
func TestSkipUnderWay(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]webhook.State{500: webhook.Skipped, 200: webhook.Delivered} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				h, s := w.hook("http://a"), w.stream()
				w.change(s)
				ends := make(chan struct{})
				w.respond = func(_ context.Context, g got) (int, error) {
					if g.number > 1 {
						return 200, nil
					}
					<-ends
					return status, nil
				}
				defer w.run("node")()
				synctest.Wait()
				_, err := w.hooks.Skip(w.t.Context(), env, h.ID, w.firstEvent(s))
				w.must(err)
				synctest.Wait()
				if sent := w.numbers("http://a", s); len(sent) != 1 {
					w.t.Errorf("beside an attempt that is under way %v were sent", sent)
				}
				close(ends)
				time.Sleep(time.Hour)
				if sent := w.numbers("http://a", s); !slices.Equal(sent, []int64{1, 2}) {
					w.t.Errorf("%v were sent", sent)
				}
				all := w.deliveries(h.ID, "")
				if first := all[len(all)-1]; first.State != want || len(first.Attempts) != 1 {
					w.t.Errorf("it is %+v", first)
				}
			})
		})
	}
}

// TestSkipUnderWayOfOurs: so is one whose attempt failed on our side and was none.
func TestSkipUnderWayOfOurs(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		h, s := w.hook("http://a"), w.stream()
		w.change(s)
		var read atomic.Int64
		ends := make(chan struct{})
		outbox := oneByOne{w.db, func() error {
			if read.Add(1) > 1 {
				return nil
			}
			<-ends
			return context.DeadlineExceeded
		}}
		events := w.events(s)
		defer w.runOn(outbox, "node")()
		synctest.Wait()
		_, err := w.hooks.Skip(w.t.Context(), env, h.ID, events[0])
		w.must(err)
		synctest.Wait()
		close(ends)
		time.Sleep(time.Hour)
		if sent := w.numbers("http://a", s); !slices.Equal(sent, []int64{2}) {
			w.t.Errorf("%v were sent", sent)
		}
	})
}

// TestRetryNow: what waits for its next attempt is sent at once when its owner wants it, also what the endpoint has
// asked to get later, and though nothing else has shown that the endpoint is well.
func TestRetryNow(t *testing.T) {
	t.Parallel()
	for name, asks := range map[string]time.Duration{"after its pause": 0, "after what was asked for": 10 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				h := w.hook("http://a")
				var well atomic.Bool
				w.asks = asks
				w.respond = func(context.Context, got) (int, error) {
					if well.Load() {
						return 200, nil
					}
					return 503, nil
				}
				const streams = 30
				for range streams {
					w.change(w.stream())
				}
				defer w.run("node")()
				time.Sleep(9 * time.Hour)
				well.Store(true)
				n, err := w.hooks.Retry(w.t.Context(), env, h.ID)
				w.must(err)
				synctest.Wait() // no time passes
				if sent := len(w.deliveries(h.ID, webhook.Delivered)); n != streams || sent != 2*streams {
					w.t.Errorf("%d were to be sent, %d of %d were delivered", n, sent, 2*streams)
				}
				if n, err = w.hooks.Retry(w.t.Context(), env, h.ID); err != nil || n != 0 {
					w.t.Errorf("once all are delivered %d wait, %v", n, err)
				}
			})
		})
	}
}

// TestReplayFailed: what failed comes again, oldest first, and nothing else does; what failed before the time that is
// given stays.
func TestReplayFailed(t *testing.T) {
	t.Parallel()
	long(t)
	bubble(t, func(w *world) {
		h := w.hook("http://a")
		old, good := w.stream(), w.stream()
		var well atomic.Bool
		w.respond = func(_ context.Context, g got) (int, error) {
			if g.number == 1 && g.resource != string(good) && !well.Load() {
				return 500, nil
			}
			return 200, nil
		}
		defer w.run("node")()
		w.change(old)
		time.Sleep(time.Hour)
		since := time.Now()
		late := w.stream()
		w.change(late)
		for range 25 { // so that it is not disabled
			w.change(good)
			time.Sleep(time.Hour)
		}
		synctest.Wait()
		if failed := w.deliveries(h.ID, webhook.Failed); len(failed) != 2 {
			w.t.Fatalf("failed %+v", failed)
		}
		well.Store(true)
		for _, step := range []struct {
			since time.Time
			of    id.LiveStream
		}{{since, late}, {time.Time{}, old}} {
			before := len(w.requests("http://a"))
			n, err := w.hooks.ReplayFailed(w.t.Context(), env, h.ID, step.since)
			w.must(err)
			synctest.Wait()
			sent := w.requests("http://a")[before:]
			if n != 1 || len(sent) != 1 || sent[0].resource != string(step.of) || sent[0].number != 1 {
				w.t.Errorf("%d were to be sent again, sent %+v", n, sent)
			}
		}
		if failed := w.deliveries(h.ID, webhook.Failed); len(failed) != 0 {
			w.t.Errorf("still failed %+v", failed)
		}
	})
}

// TestSkipBeyondMemory: one that is skipped while there is no room for it in memory, or that was there before there was
// less room, is not sent either.
func TestSkipBeyondMemory(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		const events = 30
		h, s := w.hook("http://a"), w.stream()
		for range events - 1 {
			w.change(s)
		}
		all := w.events(s)
		var sender *delivery.Dispatcher
		w.prepare = func(d *delivery.Dispatcher) { sender = d; d.Bound(events, events) }
		var well atomic.Bool
		w.respond = func(context.Context, got) (int, error) {
			if well.Load() {
				return 200, nil
			}
			return 503, nil
		}
		stop := w.run("node")
		synctest.Wait()
		w.hook("http://b") // each has half of the room now
		synctest.Wait()
		for _, n := range []int{1, events - 2} {
			_, err := w.hooks.Skip(w.t.Context(), env, h.ID, all[n])
			w.must(err)
		}
		synctest.Wait()
		well.Store(true)
		time.Sleep(time.Hour)
		stop()
		if n := sender.Waiting(); n != 0 {
			w.t.Errorf("%d are still in memory", n)
		}
		var want []int64
		for n := range int64(events) {
			if n != 1 && n != events-2 {
				want = append(want, n+1)
			}
		}
		if sent := slices.Compact(w.numbers("http://a", s)); !slices.Equal(sent, want) {
			w.t.Errorf("sent %v", sent)
		}
	})
}

// events are the IDs of those of a stream, oldest first.
func (w *world) events(s id.LiveStream) (all []string) {
	w.t.Helper()
	found, err := w.db.ListEvents(w.t.Context(), event.Query{Environment: env, Object: string(s), Limit: 1000})
	w.must(err)
	for _, e := range found {
		all = append(all, e.ID)
	}
	return all
}
