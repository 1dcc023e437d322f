package db_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// queued is an endpoint w that six events wait for, of x and y in turns, sent by the node a.
func queued(t *testing.T, url string) (*db.DB, webhook.Webhook, []event.Event) {
	t.Helper()
	d := dbtest.Open(t, url)
	w := webhook.Webhook{ID: "w", Environment: "env", Address: "https://a.example", Enabled: true}
	must(t, d.InsertWebhook(t.Context(), w, 10))
	for i := range 6 {
		must(t, d.Tell(t.Context(), func() {}, about([]string{"x", "y"}[i%2], i)))
	}
	events, err := d.ListEvents(t.Context(), event.Query{Limit: 10})
	must(t, err)
	_, err = d.Claim(t.Context(), "a", time.Hour)
	must(t, err)
	_, err = d.Queue(t.Context(), "a", []webhook.Step{{Webhook: "w", To: events[5].Sequence, Events: events}})
	must(t, err)
	return d, w, events
}

// became records what came of an attempt to deliver an event.
func became(t *testing.T, d *db.DB, sequence int64, state webhook.State, next time.Time) {
	t.Helper()
	must(t, d.Record(t.Context(), "a", []webhook.Result{{
		Webhook: "w", Sequence: sequence, State: state, FirstAt: at(10), NextAt: next,
		Attempt: webhook.Attempt{At: at(10)},
	}}, nil))
}

// pictured are the deliveries of w in a line, oldest first.
func pictured(t *testing.T, d *db.DB) string {
	t.Helper()
	all, err := d.Deliveries(t.Context(), "w", webhook.DeliveryQuery{Limit: 10})
	must(t, err)
	var out []string
	for _, one := range slices.Backward(all) {
		text := fmt.Sprintf("%d:%s", one.Sequence, one.State)
		if !one.NextAt.IsZero() {
			text += "+"
		}
		if one.Earlier != (webhook.EarlierEvent{}) {
			text += fmt.Sprintf(">%d", one.Earlier.Sequence)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// TestSkipDelivery: a delivery that waits is skipped, and no other one; the later ones of its resource wait for the
// next one then.
func TestSkipDelivery(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d, w, events := queued(t, url)
		became(t, d, 1, webhook.Waiting, at(60))
		if got := pictured(t, d); got != "1:waiting+ 2:waiting 3:waiting>1 4:waiting>2 5:waiting>1 6:waiting>2" {
			t.Errorf("before it is %s", got)
		}
		all, err := d.Deliveries(t.Context(), "w", webhook.DeliveryQuery{Limit: 1, Before: 6})
		must(t, err)
		if want := (webhook.EarlierEvent{Sequence: 1, ID: events[0].ID}); all[0].Earlier != want {
			t.Errorf("the fifth waits for %+v, want %+v", all[0].Earlier, want)
		}
		skipped, err := d.SkipDelivery(t.Context(), w, events[0].ID)
		must(t, err)
		if skipped.State != webhook.Skipped || skipped.EventID != events[0].ID || len(skipped.Attempts) != 1 {
			t.Errorf("skipped %+v", skipped)
		}
		became(t, d, 1, webhook.Waiting, at(90))
		if got := pictured(t, d); got != "1:skipped 2:waiting 3:waiting 4:waiting>2 5:waiting>3 6:waiting>2" {
			t.Errorf("then it is %s", got)
		}
		became(t, d, 2, webhook.Delivered, time.Time{})
		for i := range 2 {
			if _, err = d.SkipDelivery(t.Context(), w, events[i].ID); !fault.Is(err, fault.Conflict) {
				t.Errorf("event %d is skipped: %v", i+1, err)
			}
		}
		w.Environment = "other"
		if _, err = d.SkipDelivery(t.Context(), w, events[2].ID); !fault.Is(err, fault.NotFound) {
			t.Errorf("an event of another environment: %v", err)
		}
		became(t, d, 1, webhook.Delivered, time.Time{}) // after all
		if got := pictured(t, d); got != "1:delivered 2:delivered 3:waiting 4:waiting 5:waiting>3 6:waiting>4" {
			t.Errorf("at the end it is %s", got)
		}
	})
}

// TestChangeInBatches: what waits for a time, and what failed, is changed in parts of a size, and all else stays.
func TestChangeInBatches(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d, w, events := queued(t, url)
		for _, n := range []int64{1, 2, 4} {
			became(t, d, n, webhook.Waiting, at(60))
		}
		_, err := d.SkipDelivery(t.Context(), w, events[4].ID)
		must(t, err)
		all := func(change func(webhook.Batch) (webhook.Batched, error)) (counts []int) {
			t.Helper()
			for b := (webhook.Batch{Limit: 2}); ; {
				done, failed := change(b)
				must(t, failed)
				counts = append(counts, done.Count)
				if b.After = done.Last; !done.More {
					return counts
				}
			}
		}
		retry := func(b webhook.Batch) (webhook.Batched, error) { return d.RetryWaiting(t.Context(), w, b) }
		if counts := all(retry); !slices.Equal(counts, []int{2, 1}) {
			t.Errorf("batches of %v were retried", counts)
		}
		if got := pictured(t, d); got != "1:waiting 2:waiting 3:waiting>1 4:waiting>2 5:skipped 6:waiting>2" {
			t.Errorf("retried it is %s", got)
		}
		for n := range int64(4) {
			became(t, d, n+1, webhook.Failed, time.Time{})
		}
		since := func(since time.Time) func(b webhook.Batch) (webhook.Batched, error) {
			return func(b webhook.Batch) (webhook.Batched, error) { return d.ReplayFailed(t.Context(), w, since, b) }
		}
		if counts := all(since(at(100))); !slices.Equal(counts, []int{0}) {
			t.Errorf("since a time behind all of them batches of %v were replayed", counts)
		}
		if counts := all(since(events[1].At)); !slices.Equal(counts, []int{2, 1}) {
			t.Errorf("batches of %v were replayed", counts)
		}
		if got := pictured(t, d); got != "1:failed 2:waiting 3:waiting 4:waiting>2 5:skipped 6:waiting>2" {
			t.Errorf("replayed it is %s", got)
		}
		pending, err := d.Pending(t.Context(), id.Webhook("w"), 10)
		must(t, err)
		if first := pending[0]; first.Attempts != 0 || !first.Replayed || !first.FirstAt.IsZero() {
			t.Errorf("its attempts are counted on: %+v", first)
		}
	})
}

// TestWaitingIsPlanned: which event others wait for is found by an index, however many wait.
func TestWaitingIsPlanned(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	plan, err := d.Plans(func(d *db.DB) error {
		_, err := d.Deliveries(t.Context(), "w", webhook.DeliveryQuery{Limit: 10})
		return err
	})
	must(t, err)
	want := "webhook_deliveries_first (webhook_id=? AND state=? AND resource_id=?)"
	if !strings.Contains(fmt.Sprint(plan), want) {
		t.Errorf("it reads more: %q", plan)
	}
}
