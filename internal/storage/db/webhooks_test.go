package db_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestLeaseOfWebhook: on PostgreSQL an endpoint is one node's until it gives it back or its lease is over. On SQLite
// there are no others.
func TestLeaseOfWebhook(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.Postgres(t))
	must(t,
		d.InsertWebhook(t.Context(), webhook.Webhook{
			ID: "w", Environment: "env", Address: "https://example.com", Enabled: true,
		}, 10))
	claim := func(node id.Node, lease time.Duration) int {
		t.Helper()
		held, err := d.Claim(t.Context(), node, lease)
		must(t, err)
		return len(held)
	}
	if claim("a", time.Hour) != 1 || claim("b", time.Hour) != 0 || claim("a", time.Hour) != 1 {
		t.Error("two nodes have it, or none")
	}
	must(t, d.Tell(t.Context(), func() {}, about("x", 1)))
	last, err := d.LastEvent(t.Context())
	must(t, err)
	step := []webhook.Step{{Webhook: "w", From: 0, To: last, Events: []event.Event{{Sequence: last, Resource: "x"}}}}
	if queued, err := d.Queue(t.Context(), "b", step); err != nil || len(queued) != 0 {
		t.Errorf("the other node queued %v, %v", queued, err)
	}
	if queued, err := d.Queue(t.Context(), "a", step); err != nil || len(queued) != 1 {
		t.Errorf("its node queued %v, %v", queued, err)
	}
	if queued, err := d.Queue(t.Context(), "a", step); err != nil || len(queued) != 0 {
		t.Errorf("from a position that is over it queued %v, %v", queued, err)
	}
	must(t, d.Release(t.Context(), "a"))
	if claim("b", time.Millisecond) > 1 {
		t.Error("more than there are")
	}
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for range 1000 {
		if <-look.C; claim("c", time.Hour) == 1 {
			return
		}
	}
	t.Error("nobody gets it once the lease is over")
}

// TestClaimUnreadable: a webhook whose row can't be read keeps nothing from others.
func TestClaimUnreadable(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		for _, w := range []id.Webhook{"a", "b", "c"} {
			must(t,
				d.InsertWebhook(t.Context(), webhook.Webhook{
					ID: w, Environment: "env", Address: "https://" + string(w) + ".example", Enabled: true, Secret: "s",
				}, 10))
		}
		must(t,
			d.Exec(t.Context(),
				"UPDATE webhooks SET secret = (SELECT secret FROM webhooks WHERE id = 'c') WHERE id = 'a'"))
		held, err := d.Claim(t.Context(), "node", time.Hour)
		must(t, err)
		text := ""
		for _, h := range held {
			text += fmt.Sprintf("%s:%t ", h.ID, h.Err == nil)
		}
		if text != "a:false b:true c:true " {
			t.Errorf("claimed %s", text)
		}
	})
}

// TestPruneDeliveries: the deliveries of an event are removed with it, whatever has become of them, and those of later
// events stay.
func TestPruneDeliveries(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		must(t, d.InsertWebhook(t.Context(), webhook.Webhook{
			ID: "w", Environment: "env", Address: "https://a.example", Enabled: true,
		}, 10))
		for i := range 4 {
			must(t, d.Tell(t.Context(), func() {}, about("x", i)))
		}
		events, err := d.ListEvents(t.Context(), event.Query{Limit: 10})
		must(t, err)
		_, err = d.Claim(t.Context(), "a", time.Hour)
		must(t, err)
		_, err = d.Queue(t.Context(), "a", []webhook.Step{{Webhook: "w", To: events[3].Sequence, Events: events}})
		must(t, err)
		once := webhook.Attempt{At: at(10)}
		must(t, d.Record(t.Context(), "a", []webhook.Result{
			{Webhook: "w", Sequence: events[0].Sequence, State: webhook.Delivered, Attempt: once},
			{Webhook: "w", Sequence: events[1].Sequence, State: webhook.Failed, Attempt: once},
		}, nil))
		if n, failed := d.PruneEvents(t.Context(), at(3), 10); failed != nil || n != 3 {
			t.Fatalf("removed %d events, %v", n, failed)
		}
		left, err := d.Texts(t.Context(), "sequence", "webhook_deliveries")
		must(t, err)
		if want := []string{strconv.FormatInt(events[3].Sequence, 10)}; !slices.Equal(left, want) {
			t.Errorf("deliveries of events %v are left, want %v", left, want)
		}
	})
}

// TestLateRecord: what a node records of an endpoint that is another one's by now, or of a delivery that was given up,
// is noted and has no say.
func TestLateRecord(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		must(t,
			d.InsertWebhook(t.Context(), webhook.Webhook{
				ID: "w", Environment: "env", Address: "https://a.example", Enabled: true,
			}, 10))
		for i := range 4 {
			must(t, d.Tell(t.Context(), func() {}, about("x", i)))
		}
		events, err := d.ListEvents(t.Context(), event.Query{Limit: 10})
		must(t, err)
		own := func(node id.Node) {
			t.Helper()
			held, failed := d.Claim(t.Context(), node, time.Hour)
			must(t, failed)
			if len(held) != 1 {
				t.Fatalf("%s has %d endpoints", node, len(held))
			}
		}
		record := func(node id.Node, sequence int64, state webhook.State) {
			t.Helper()
			r := webhook.Result{
				Webhook: "w", Sequence: sequence, State: state, NextAt: at(100),
				Attempt: webhook.Attempt{At: at(10), Address: string(node)},
			}
			must(t, d.Record(t.Context(), node, []webhook.Result{r}, map[id.Webhook]time.Time{"w": at(int(sequence))}))
		}
		own("a")
		_, err = d.Queue(t.Context(), "a", []webhook.Step{{Webhook: "w", To: events[3].Sequence, Events: events}})
		must(t, err)
		must(t, d.Release(t.Context(), "a"))
		own("b")
		record("b", 1, webhook.Delivered)
		record("a", 1, webhook.Waiting)
		record("a", 2, webhook.Delivered) // b does not know, and sends it again
		record("b", 2, webhook.Waiting)
		record("b", 3, webhook.Waiting)
		n, err := d.FailTried(t.Context(), "w", webhook.Attempt{At: at(11), Error: "disabled"}, 10)
		must(t, err)
		if n != 2 {
			t.Errorf("%d were given up, want those two that were tried", n)
		}
		record("b", 2, webhook.Waiting)
		record("b", 3, webhook.Delivered) // after all
		got, err := d.Deliveries(t.Context(), "w", webhook.DeliveryQuery{Limit: 10})
		must(t, err)
		text := ""
		for _, one := range got {
			text += fmt.Sprintf("%d:%s:%d ", one.Sequence, one.State, len(one.Attempts))
		}
		if text != "4:waiting:0 3:delivered:3 2:failed:4 1:delivered:2 " {
			t.Errorf("got %s", text)
		}
		w, err := d.Webhook(t.Context(), "env", "w")
		must(t, err)
		if !w.FailingSince.Equal(at(3)) {
			t.Errorf("it fails since %v by the one whose it is not", w.FailingSince)
		}
	})
}

// TestAttemptsOf: what was tried to deliver events to any endpoint, in the order of time, the newest alone where there
// is much.
func TestAttemptsOf(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		began := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
		for _, w := range []id.Webhook{"a", "b"} {
			must(t,
				d.InsertWebhook(t.Context(), webhook.Webhook{
					ID: w, Environment: "env", Address: "https://" + string(w) + ".example", Enabled: true,
				}, 10))
		}
		_, err := d.Claim(t.Context(), "node", time.Hour)
		must(t, err)
		for _, w := range []id.Webhook{"a", "b"} {
			_, err = d.Queue(t.Context(), "node", []webhook.Step{
				{Webhook: w, To: 3, Events: []event.Event{{Sequence: 1, Resource: "x"}, {Sequence: 3, Resource: "x"}}},
			})
			must(t, err)
		}
		for i, w := range []id.Webhook{"b", "a", "b"} {
			a := webhook.Attempt{At: began.Add(time.Duration(i) * time.Second), Address: string(w), Status: 500 + i}
			must(t,
				d.Record(t.Context(), "node", []webhook.Result{
					{Webhook: w, Sequence: 1, State: webhook.Waiting, Attempt: a},
				}, nil))
		}
		for most, want := range map[int][]int{10: {500, 501, 502}, 2: {501, 502}} {
			got, err := d.AttemptsOf(t.Context(), []int64{1, 2, 3}, most)
			must(t, err)
			var statuses []int
			for _, a := range got[1] {
				statuses = append(statuses, a.Status)
			}
			if len(got) != 1 || !slices.Equal(statuses, want) {
				t.Errorf("at most %d: %+v", most, got)
			}
		}
		if got, err := d.AttemptsOf(t.Context(), nil, 10); err != nil || len(got) != 0 {
			t.Errorf("of no events: %v, %v", got, err)
		}
	})
}

// TestDeliveriesByState: those that wait or failed are found by an index of their own, however many were delivered
// before them.
func TestDeliveriesByState(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	for index, read := range map[string]func(*db.DB) error{
		"webhook_deliveries_waiting": func(d *db.DB) error {
			_, err := d.Pending(t.Context(), "w", 10)
			return err
		},
		"webhook_deliveries_failed": func(d *db.DB) error {
			_, err := d.Deliveries(t.Context(), "w", webhook.DeliveryQuery{State: webhook.Failed, Limit: 10})
			return err
		},
		"webhook_deliveries_skipped": func(d *db.DB) error {
			_, err := d.Deliveries(t.Context(), "w", webhook.DeliveryQuery{State: webhook.Skipped, Limit: 10})
			return err
		},
	} {
		plan, err := d.Plans(read)
		must(t, err)
		if len(plan) == 0 || !strings.Contains(plan[0], index) {
			t.Errorf("%s is not used: %q", index, plan)
		}
	}
}
