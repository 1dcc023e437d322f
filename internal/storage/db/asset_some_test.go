package db_test

import (
	"slices"
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestAssetSome: assets are read by their IDs, those of the environment that are there.
func TestAssetSome(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		one, two, other := plainAsset("env", "1", at(1)), plainAsset("env", "2", at(2)), plainAsset("other", "x", at(1))
		insertAssets(t, d, one, two, other)
		of := []id.Asset{"\x00", "unknown", other.ID, two.ID, one.ID}
		found, err := d.Assets().Some(t.Context(), "env", of)
		got := assetNames(found)
		slices.Sort(got)
		want := assetNames([]asset.Asset{one, two})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	})
}

// TestAssetSomePlan: a few assets are found by their IDs, however many the environment has.
func TestAssetSomePlan(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	plan, err := d.Plans(func(d *db.DB) error {
		_, err := d.Assets().Some(t.Context(), "env", []id.Asset{"a", "b", "c"})
		return err
	})
	must(t, err)
	if len(plan) == 0 || !strings.Contains(plan[0], "sqlite_autoindex_assets_1 (id=?)") {
		t.Errorf("the plan is\n%s", strings.Join(plan, "\n"))
	}
}
