package db

import (
	"context"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"millrace/internal/control/asset"
	"millrace/internal/id"
)

// TestMigrateUnfinished: of assets that are there already it is found out on which work may be left.
func TestMigrateUnfinished(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Options{URL: filepath.Join(t.TempDir(), "x.db")})
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
	all := map[string]asset.Asset{"done": done, "recorded": recorded, "errored": errored, "preparing": preparing, "file": file, "master": master}
	for name, a := range all {
		a.ID, a.Environment = id.Asset(name), "env"
		if err = d.Assets().Insert(t.Context(), asset.Change{Asset: a}); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, d.write.DB, folder)
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
