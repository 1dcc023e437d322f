package db_test

import (
	"database/sql"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// recording is a broadcast that a process leads, with the asset that it is recorded as.
func recording(t *testing.T, d *db.DB) (asset.Asset, asset.Writer) {
	t.Helper()
	s := led(t, d, "live", there())
	a := plainAsset(s.Environment, string(s.ActiveAsset), at(0))
	a.ID, a.LiveStream, a.IsLive = s.ActiveAsset, s.ID, true
	insertAssets(t, d, a)
	return a, asset.Writer{
		LiveStream: s.ID, Epoch: s.Epoch, Generation: s.Generation, Node: s.Node, Run: s.Run,
	}
}

// TestStaleWriter: what somebody writes whom the stream's row does not name (the stream, the epoch, the generation, the
// node, the run and the asset count) is refused and changes nothing.
func TestStaleWriter(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store, assets, ctx := d.Assets(), asset.NewWork(asset.Options{Store: d.Assets()}), t.Context()
		a, w := recording(t, d)
		append1 := func(of id.Asset, w asset.Writer, n int64, data string) error {
			return store.Append(ctx, of, w, []asset.TimelineEntry{{Sequence: n, Data: []byte(data)}})
		}
		save := func(w asset.Writer, n int64) error {
			row, err := store.Find(ctx, a.ID)
			must(t, err)
			row.Entries = n
			return store.Save(ctx, asset.Change{
				From: row.Status, Asset: row, By: w,
				Entries: []asset.TimelineEntry{{Sequence: n, Data: []byte("saved")}},
			})
		}
		must(t, append1(a.ID, w, 0, "first"))
		must(t, append1(a.ID, w, 0, "again"))
		must(t, save(w, 1))
		before, err := store.Find(ctx, a.ID)
		must(t, err)
		other := plainAsset(a.Environment, "other", at(0))
		other.LiveStream, other.IsLive = a.LiveStream, true
		insertAssets(t, d, other)
		for name, change := range map[string]func(w *asset.Writer){
			"stream":     func(w *asset.Writer) { w.LiveStream = "another" },
			"epoch":      func(w *asset.Writer) { w.Epoch++ },
			"generation": func(w *asset.Writer) { w.Generation-- },
			"node":       func(w *asset.Writer) { w.Node = here().Node },
			"run":        func(w *asset.Writer) { w.Run = here().Run },
		} {
			stale := w
			change(&stale)
			for what, failed := range map[string]error{
				"append": append1(a.ID, stale, 2, "stale"), "append what is there": append1(a.ID, stale, 0, "stale"),
				"save": save(stale, 2),
				"grow": assets.Grow(ctx, a.ID, asset.Growth{By: stale}, at(9)),
				"end":  assets.EndLive(ctx, a.ID, stale, nil, at(9)),
			} {
				if !fault.Is(failed, fault.Conflict) {
					t.Errorf("another %s, %s: %v", name, what, failed)
				}
			}
		}
		if failed := append1(other.ID, w, 0, "stale"); !fault.Is(failed, fault.Conflict) {
			t.Errorf("to an earlier asset: %v", failed)
		}
		after, err := store.Find(ctx, a.ID)
		must(t, err)
		entries, err := store.Timeline(ctx, a.ID, 0)
		must(t, err)
		if after.Revision != before.Revision || after.Entries != 1 || len(entries) != 2 ||
			string(entries[0].Data) != "first" {
			t.Errorf("the asset has changed: %+v with %v, it was %+v", after, entries, before)
		}
		must(t, append1(a.ID, w, 2, "third"))
	})
}

// TestWriterIsReplaced: what a writer writes while another one takes its place waits for that, and is refused then.
func TestWriterIsReplaced(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	d := dbtest.Open(t, url)
	a, w := recording(t, d)
	ends, err := d.Led(t.Context(), w, string(a.ID), "idle_in_transaction_session_timeout")
	if must(t, err); ends != "5s" {
		t.Errorf("a writer that says nothing any more keeps its broadcast for %s", ends)
	}
	raw, err := sql.Open("pgx", url)
	must(t, err)
	t.Cleanup(func() { must(t, raw.Close()) })
	for name, write := range map[string]func() error{
		"append": func() error {
			return d.Assets().Append(t.Context(), a.ID, w, []asset.TimelineEntry{{Data: []byte("late")}})
		},
		"save": func() error {
			row, failed := d.Assets().Find(t.Context(), a.ID)
			must(t, failed)
			return d.Assets().Save(t.Context(), asset.Change{From: row.Status, Asset: row, By: w})
		},
	} {
		other, failed := raw.BeginTx(t.Context(), nil)
		must(t, failed)
		const take = "UPDATE live_streams SET generation = generation + 1 WHERE id = $1"
		_, err = other.ExecContext(t.Context(), take, a.LiveStream)
		must(t, err)
		done := make(chan error, 1)
		go func() { done <- write() }()
		var early error
		for waits, wrote := 0, false; waits == 0 && !wrote; {
			must(t, raw.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity "+
				"WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waits))
			select {
			case early = <-done:
				wrote = true
				t.Errorf("%s, while another one takes its place: %v", name, early)
				done <- early
			default:
			}
		}
		must(t, other.Commit())
		if err = <-done; !fault.Is(err, fault.Conflict) {
			t.Errorf("%s, when another one has taken its place: %v", name, err)
		}
		w.Generation++
	}
	entries, err := d.Assets().Timeline(t.Context(), a.ID, 0)
	must(t, err)
	if len(entries) > 0 {
		t.Errorf("%d entries were written", len(entries))
	}
}
