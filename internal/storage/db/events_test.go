package db_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/control/upload"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

func about(resource string, seconds int) event.Event {
	return event.New("env", "test.thing.changed", "thing", resource, at(seconds), map[string]string{"of": resource})
}

// reader reads on from where it was.
type reader struct {
	d     *db.DB
	after int64
	seen  []event.Event
}

func (r *reader) read(t *testing.T) {
	t.Helper()
	for {
		got, err := r.d.ListEvents(t.Context(), event.Query{Environment: "env", After: r.after, Limit: 7})
		if err != nil {
			t.Error(err)
			return
		}
		if len(got) == 0 {
			return
		}
		r.seen = append(r.seen, got...)
		r.after = got[len(got)-1].Sequence
	}
}

// TestLateCommit: an event whose transaction began first and is committed last comes behind those that have been read
// meanwhile.
func TestLateCommit(t *testing.T) {
	t.Parallel()
	for name, fresh := range dbtest.Engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dbtest.Open(t, fresh(t))
			r := reader{d: d}
			written, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			late := about("late", 1)
			go func() {
				ended <- d.Tell(context.WithoutCancel(t.Context()), func() { close(written); <-release }, late)
			}()
			<-written
			if name == "sqlite" { // whose transactions wait for each other
				close(release)
			}
			early := about("early", 2)
			must(t, d.Tell(t.Context(), func() {}, early))
			r.read(t)
			if name != "sqlite" {
				if len(r.seen) != 1 || r.seen[0].ID != early.ID {
					t.Errorf("before the late commit: %+v", r.seen)
				}
				close(release)
			}
			must(t, <-ended)
			r.read(t)
			if len(r.seen) != 2 || !slices.ContainsFunc(r.seen, func(e event.Event) bool { return e.ID == late.ID }) {
				t.Errorf("the late event is lost: %+v", r.seen)
			}
		})
	}
}

// TestInterleavedCommits: a reader that goes on while many write misses nothing, sees nothing twice, and each resource
// in order.
func TestInterleavedCommits(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		const writers, each, resources = 8, 30, 5
		readers := []*reader{{d: d}, {d: d}}
		var wg, reading sync.WaitGroup
		over := make(chan struct{})
		for _, r := range readers {
			reading.Go(func() {
				for {
					select {
					case <-over:
						r.read(t)
						return
					default:
						r.read(t)
					}
				}
			})
		}
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					// Times go back and forth, as those of several nodes do, and changes of one resource come from all
					// writers.
					one, two := about(fmt.Sprintf("r%d", (w+i)%resources), (i*7+w*13)%50),
						about(fmt.Sprintf("r%d", (w+i)%resources), 60-i)
					if err := d.Tell(t.Context(), func() {}, one, two); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		close(over)
		reading.Wait()
		for _, r := range readers {
			if len(r.seen) != 2*writers*each {
				t.Errorf("seen %d events, want %d", len(r.seen), 2*writers*each)
			}
			numbers, sequence := map[string]int64{}, int64(0)
			for _, e := range r.seen {
				if numbers[e.Resource]++; e.Number != numbers[e.Resource] {
					t.Fatalf("%s: number %d in place of %d", e.Resource, e.Number, numbers[e.Resource])
				}
				if sequence++; e.Sequence != sequence {
					t.Fatalf("sequence %d in place of %d", e.Sequence, sequence)
				}
			}
		}
	})
}

// TestNews: a waiting reader is told of events, by any process on PostgreSQL.
func TestNews(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		r := reader{d: d}
		for i := range 3 {
			news := d.News()
			must(t, d.Tell(t.Context(), func() {}, about("x", i)))
			for r.read(t); len(r.seen) <= i; r.read(t) { // what was in the database before also is news
				<-news
				news = d.News()
			}
		}
		stop()
		must(t, <-ended)
	})
}

func ids(events []event.Event) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, e.ID)
	}
	return out
}

// TestListEvents: every filter, alone and with others, gives what a plain search of all events gives.
func TestListEvents(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		var all []event.Event
		for i := range 60 {
			e := event.New("env", fmt.Sprintf("test.t%d", i%3), "thing", fmt.Sprintf("o%d", i%7), at(i*600-i%2), nil)
			if i%5 == 0 {
				e = e.Of("owner")
			}
			if i%11 == 0 {
				e.Environment = "other"
			}
			must(t, d.Tell(event.WithRequest(t.Context(), "request"), func() {}, e))
			e.Sequence = int64(i + 1)
			all = append(all, e)
		}
		for _, q := range []event.Query{
			{},
			{Environment: "env"},
			{Environment: "other"},
			{Environment: "none"},
			{Types: []string{"test.t1"}},
			{Types: []string{"test.t1", "test.t2", "test.t1"}},
			{Object: "o3"},
			{Object: "owner"},
			{Object: "owner", Types: []string{"test.t0", "x"}},
			{Object: "a\x00b"},
			{Types: []string{"\xff"}},
			{Since: at(6000)},
			{Until: at(6000)},
			{Since: at(6000), Until: at(12000), Types: []string{"test.t2"}, Environment: "env"},
			{After: 20, Before: 30},
			{Sequences: []int64{40, 3, 12, 99}},
			{Sequences: []int64{40, 3, 12}, Environment: "env", Types: []string{"test.t2"}, Before: 40},
			{Since: at(1_000_000)},
			{Until: at(-100_000)},
		} {
			var want []event.Event
			for _, e := range all {
				if (q.Environment == "" || e.Environment == q.Environment) &&
					(len(q.Types) == 0 || slices.Contains(q.Types, e.Type)) &&
					(q.Object == "" || q.Object == e.ObjectID || q.Object == e.Resource) &&
					(q.Since.IsZero() || !e.At.Before(q.Since)) &&
					(q.Until.IsZero() || e.At.Before(q.Until)) && e.Sequence > q.After &&
					(q.Before == 0 || e.Sequence < q.Before) &&
					(len(q.Sequences) == 0 || slices.Contains(q.Sequences, e.Sequence)) {
					want = append(want, e)
				}
			}
			for _, limit := range []int{3, 1000} {
				q.Limit = limit
				for _, q.NewestFirst = range []bool{false, true} {
					got, err := d.ListEvents(t.Context(), q)
					must(t, err)
					some := slices.Clone(want)
					if q.NewestFirst {
						slices.Reverse(some)
					}
					some = some[:min(limit, len(some))]
					if !slices.Equal(ids(got), ids(some)) {
						t.Errorf("%+v: got %d events, want %d", q, len(got), len(some))
					}
				}
			}
		}
		one, err := d.GetEvent(t.Context(), "env", all[1].ID)
		must(t, err)
		if one.RequestID != "request" || one.Number != 1 || one.Sequence != 2 || !one.At.Equal(all[1].At) {
			t.Errorf("event %+v", one)
		}
		if _, err = d.GetEvent(t.Context(), "other", all[1].ID); err == nil {
			t.Error("another environment's event was given")
		}
		if last, err := d.LastEvent(t.Context()); err != nil || last != 60 {
			t.Errorf("last event %d, %v", last, err)
		}
	})
}

// TestPruneEvents removes the oldest first and a few at a time; resources that go on keep counting, also behind the end
// of a part of them, and so does the sequence.
func TestPruneEvents(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		tell := func(typ, resource string, seconds int) {
			must(t, d.Tell(t.Context(), func() {}, event.New("env", typ, "thing", resource, at(seconds), nil)))
		}
		tell("test.thing.created", "a", 1)
		tell("test.thing.created", "b", 2)
		tell("test.thing.deleted", "a", 3)
		tell("test.thing.part.deleted", "c", 4)
		tell("test.thing.changed", "b", 30)
		_, err := d.LastEvent(t.Context()) // which numbers them
		must(t, err)
		for _, want := range []int{2, 2, 0} {
			if n, failed := d.PruneEvents(t.Context(), at(20), 2); failed != nil || n != want {
				t.Errorf("removed %d, %v; want %d", n, failed, want)
			}
		}
		if first, failed := d.FirstEvent(t.Context()); failed != nil || first != 5 {
			t.Errorf("the first event that is kept is %d, %v", first, failed)
		}
		tell("test.thing.created", "a", 40) // another thing of the same name
		tell("test.thing.changed", "b", 41)
		tell("test.thing.changed", "c", 42)
		got, err := d.ListEvents(t.Context(), event.Query{Limit: 10})
		must(t, err)
		text := ""
		for _, e := range got {
			text += fmt.Sprintf("%s%d-%d ", e.Resource, e.Number, e.Sequence)
		}
		if text != "b2-5 a1-6 b3-7 c2-8 " {
			t.Errorf("got %s", text)
		}
	})
}

// TestNumbersOfTheEnded: the counter of a resource that has ended without an event of its deletion goes with the last
// of its events, or when it ends, if that comes later. Those of others stay.
func TestNumbersOfTheEnded(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		hooks, uploads := webhook.New(d, nil), upload.New(upload.Options{Store: d.Uploads()})
		assets := asset.New(asset.Options{Store: d.Assets()})
		counted := func(want ...string) {
			t.Helper()
			got, err := d.Texts(t.Context(), "resource_id", "event_numbers ORDER BY 1")
			must(t, err)
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("events of %q are counted, want %q", got, want)
			}
		}
		prune := func(seconds int) {
			t.Helper()
			_, err := d.LastEvent(t.Context()) // which numbers them
			must(t, err)
			_, err = d.PruneEvents(t.Context(), at(seconds), 100)
			must(t, err)
		}
		add := func() upload.Upload {
			t.Helper()
			timeout := 60
			u, err := uploads.Create(t.Context(), "env", upload.CreateInput{CORSOrigin: "*", Timeout: &timeout}, at(0))
			must(t, err)
			return u
		}
		hook := func(address string) id.Webhook {
			t.Helper()
			w, err := hooks.Create(t.Context(), "env", webhook.CreateInput{Address: address}, at(0))
			must(t, err)
			_, err = hooks.Test(t.Context(), "env", w.ID, at(1))
			must(t, err)
			return w.ID
		}
		waiting, cancelled, timedOut, arrived, failed := add(), add(), add(), add(), add()
		stays, deleted := hook("https://a.example"), hook("https://b.example")
		_, err := uploads.Cancel(t.Context(), "env", cancelled.ID, at(2))
		must(t, err)
		for _, u := range []upload.Upload{arrived, failed} {
			made := asset.Asset{ID: id.Asset("of" + u.ID), Environment: "env", Upload: u.ID, CreatedAt: at(2)}
			c, failure := uploads.Completed(u, made.ID, at(2))
			must(t, failure)
			must(t, d.CompleteUpload(t.Context(), c, asset.Change{Asset: made, Events: []event.Event{
				event.New("env", asset.EventCreated, asset.EventObject, string(made.ID), at(2), made),
			}}))
		}
		must(t, uploads.Fail(t.Context(), failed.ID, upload.Error{Type: "t", Message: "m"}, at(3)))
		must(t, hooks.Delete(t.Context(), "env", deleted))
		asOf, failedAsset := "of"+string(arrived.ID), "of"+string(failed.ID)
		counted(string(waiting.ID), string(cancelled.ID), string(timedOut.ID), string(arrived.ID), string(failed.ID),
			string(stays), string(deleted), asOf, failedAsset)
		prune(100)
		counted(string(waiting.ID), string(timedOut.ID), string(stays), asOf, failedAsset)
		must(t, uploads.Expire(t.Context(), timedOut.ID, at(100))) // which no event tells of
		must(t, hooks.Delete(t.Context(), "env", stays))
		counted(string(waiting.ID), asOf, failedAsset)
		must(t, assets.Delete(t.Context(), "env", id.Asset(asOf), at(101)))
		prune(200)
		counted(string(waiting.ID), failedAsset)
	})
}

// TestMigrateNumbersOfTheEnded: counters of resources that ended before are marked, and those that can't be of anything
// that is there are removed.
func TestMigrateNumbersOfTheEnded(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		hooks, uploads := webhook.New(d, nil), upload.New(upload.Options{Store: d.Uploads()})
		var made []upload.Upload
		var hooked []id.Webhook
		for i := range 2 {
			u, err := uploads.Create(t.Context(), "env", upload.CreateInput{CORSOrigin: "*"}, at(i))
			must(t, err)
			made = append(made, u)
			w, err := hooks.Create(t.Context(), "env", webhook.CreateInput{Address: fmt.Sprintf("https://%d.example",
				i)}, at(i))
			must(t, err)
			_, err = hooks.Test(t.Context(), "env", w.ID, at(i))
			must(t, err)
			hooked = append(hooked, w.ID)
		}
		must(t, d.Tell(t.Context(), func() {}, about("thing", 3)))
		_, err := uploads.Cancel(t.Context(), "env", made[1].ID, at(4))
		must(t, err)
		must(t, hooks.Delete(t.Context(), "env", hooked[1]))
		must(t, d.Exec(t.Context(), "UPDATE event_numbers SET ended = FALSE")) // as earlier versions left it
		must(t,
			d.Exec(t.Context(), "INSERT INTO event_numbers (resource_id, last, ended) VALUES ('forgotten', 3, FALSE)"))
		must(t, d.Exec(t.Context(), fmt.Sprintf("DELETE FROM events WHERE resource_id = '%s'", made[0].ID)))
		must(t, d.MigrateTo(t.Context(), 32))
		must(t, d.MigrateTo(t.Context(), 33))
		for where, want := range map[string][]string{
			"ended": {string(made[1].ID), string(hooked[1])}, "NOT ended": {
				string(made[0].ID), string(hooked[0]),
				"thing",
			},
		} {
			got, err := d.Texts(t.Context(), "resource_id", "event_numbers WHERE "+where)
			must(t, err)
			slices.Sort(got)
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", where, got, want)
			}
		}
	})
}
