package db_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestStandings: how far events have come at each endpoint, also where nothing was queued.
func TestStandings(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		for key, types := range map[id.Webhook][]string{"a": nil, "b": {"test.two"}, "gone": nil} {
			w := webhook.Webhook{ID: key, Environment: "env", Address: "https://" + string(key), Types: types}
			w.Enabled = true
			must(t, d.InsertWebhook(t.Context(), w, 10))
		}
		for _, typ := range []string{"test.one", "test.two", "test.one"} {
			must(t, d.Tell(t.Context(), func() {}, event.New("env", typ, "thing", "x", at(1), nil)))
		}
		events, err := d.ListEvents(t.Context(), event.Query{Limit: 10})
		must(t, err)
		_, err = d.Claim(t.Context(), "node", time.Hour)
		must(t, err)
		_, err = d.Queue(t.Context(), "node", []webhook.Step{
			{Webhook: "a", To: 2, Events: events[:2]},
			{Webhook: "gone", To: 2, Events: events[:2]},
		})
		must(t, err)
		must(t, d.Record(t.Context(), "node", []webhook.Result{
			{Webhook: "a", Sequence: 1, State: webhook.Waiting, NextAt: at(60)},
			{Webhook: "a", Sequence: 2, State: webhook.Delivered},
			{Webhook: "gone", Sequence: 2, State: webhook.Failed},
		}, nil))
		must(t, d.DeleteWebhook(t.Context(), "env", "gone"))
		got, err := d.Standings(t.Context(), "env", events)
		must(t, err)
		for sequence, want := range map[int64][]webhook.Standing{
			1: {{Webhook: "a", State: webhook.Waiting, Tried: true, NextAt: at(60)}},
			2: {
				{Webhook: "a", State: webhook.Delivered, Tried: true},
				{Webhook: "gone", State: webhook.Failed, Tried: true},
				{Webhook: "b", State: webhook.Waiting},
			},
			3: {{Webhook: "a", State: webhook.Waiting}},
		} {
			if !slices.EqualFunc(got[sequence], want, func(a, b webhook.Standing) bool {
				same := a.NextAt.Equal(b.NextAt)
				a.NextAt, b.NextAt = time.Time{}, time.Time{}
				return same && a == b
			}) {
				t.Errorf("event %d: got %+v, want %+v", sequence, got[sequence], want)
			}
		}
		for _, none := range [][]event.Event{nil, {{Environment: "none", Sequence: 9}}} {
			if got, err = d.Standings(t.Context(), "none", none); err != nil || len(got) > 0 {
				t.Errorf("of %v: %v, %v", none, got, err)
			}
		}
	})
}

// TestStandingsArePlanned: however many deliveries and events there are, those that are named are found by an index.
func TestStandingsArePlanned(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	plan, err := d.Plans(func(d *db.DB) error {
		_, err := d.Standings(t.Context(), "env", []event.Event{{Sequence: 1}, {Sequence: 2}})
		return err
	})
	must(t, err)
	named, err := d.Plans(func(d *db.DB) error {
		_, failed := d.ListEvents(t.Context(), event.Query{Environment: "env", Sequences: []int64{1, 2}, Limit: 2})
		return failed
	})
	must(t, err)
	if !strings.Contains(fmt.Sprint(named), "events_list (environment_id=? AND sequence=?)") {
		t.Errorf("named events are not found by an index: %q", named)
	}
	all := fmt.Sprint(plan)
	if strings.Contains(all, "SCAN webhook") || !strings.Contains(all, "webhook_deliveries_old (sequence=?)") {
		t.Errorf("it reads more: %q", plan)
	}
}
