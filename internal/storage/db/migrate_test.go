package db

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/id"
	"millrace/internal/masterkey"
)

// TestMigrateUnfinished: of assets that are there already it is found out on which work may be left.
func TestMigrateUnfinished(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Options{
		URL: filepath.Join(t.TempDir(), "x.db"), MasterKey: masterkey.Of(masterkey.Key{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	done := asset.Asset{Status: asset.Ready, Index: "x"}
	recorded, errored, preparing, file, master := done, done, done, done, done
	recorded.Index = ""
	errored.Status, errored.Index = asset.Errored, ""
	preparing.Status, preparing.Index = asset.Preparing, ""
	file.Static.Files = []asset.StaticRendition{{Status: asset.FilePreparing}}
	master.Master = &asset.Master{Status: asset.FileReady}
	all := map[string]asset.Asset{
		"done": done, "recorded": recorded, "errored": errored, "preparing": preparing, "file": file, "master": master,
	}
	for name, a := range all {
		a.ID, a.Environment = id.Asset(name), "env"
		if err = d.Assets().Insert(t.Context(), asset.Change{Asset: a}); err != nil {
			t.Fatal(err)
		}
	}
	p, err := provider(goose.DialectSQLite3, d.write.DB, &d.vault, migrations)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { _, failed := p.DownTo(ctx, 4); return failed },
		func(ctx context.Context) error { _, failed := p.Up(ctx); return failed },
	} {
		if err = step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	left, err := d.Assets().Unfinished(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, a := range left {
		got[string(a.ID)] = true
	}
	for name, a := range all {
		if got[name] != a.Unfinished() {
			t.Errorf("%s: left is %t, want %t", name, got[name], a.Unfinished())
		}
	}
}

// TestMigrateEvents: events that are there already get their numbers, in the order of their times.
func TestMigrateEvents(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Options{
		URL: filepath.Join(t.TempDir(), "x.db"), MasterKey: masterkey.Of(masterkey.Key{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	p, err := provider(goose.DialectSQLite3, d.write.DB, &d.vault, migrations)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.DownTo(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	_, err = d.write.ExecContext(t.Context(),
		`INSERT INTO events (id, environment_id, type, object_kind, object_id, at, position, data) VALUES
		('c', 'env', 't', 'k', 'x', 20, 0, '{}'), ('b', 'env', 't', 'k', 'y', 10, 1, '{}'), ('a', 'env', 't', 'k', 'x', 10, 0, '{}')`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err = d.Tell(t.Context(), func() {}, event.New("env", "t", "k", "x", time.UnixMilli(30), nil)); err != nil {
		t.Fatal(err)
	}
	got, err := d.ListEvents(t.Context(), event.Query{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, e := range got {
		text += fmt.Sprintf("%s%d-%d ", e.Resource, e.Number, e.Sequence)
	}
	if text != "x1-1 y1-2 x2-3 x3-4 " {
		t.Errorf("got %s", text)
	}
}

// TestMigrateEndOfMaster: an asset whose master has ended goes on counting its events once they are removed; one that
// was deleted does not.
func TestMigrateEndOfMaster(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Options{
		URL: filepath.Join(t.TempDir(), "x.db"), MasterKey: masterkey.Of(masterkey.Key{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	p, err := provider(goose.DialectSQLite3, d.write.DB, &d.vault, migrations)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.DownTo(t.Context(), 30); err != nil {
		t.Fatal(err)
	}
	tell := func(typ, resource string, second int64) {
		t.Helper()
		if failed := d.Tell(t.Context(), func() {},
			event.New("env", typ, asset.EventObject, resource, time.Unix(second, 0), nil)); failed != nil {
			t.Fatal(failed)
		}
	}
	tell(asset.EventMasterDeleted, "lives", 1)
	tell(asset.EventDeleted, "gone", 2)
	// as earlier versions wrote it
	if _, err = d.write.ExecContext(t.Context(), "UPDATE event_numbers SET ended = TRUE"); err != nil {
		t.Fatal(err)
	}
	if _, err = p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, failed := d.PruneEvents(t.Context(), time.Unix(10, 0), 10); failed != nil || n != 2 {
		t.Fatalf("removed %d, %v", n, failed)
	}
	tell(asset.EventUpdated, "lives", 20)
	tell(asset.EventCreated, "gone", 21)
	got, err := d.ListEvents(t.Context(), event.Query{Limit: 10})
	if err != nil || len(got) != 2 || got[0].Number != 2 || got[1].Number != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
