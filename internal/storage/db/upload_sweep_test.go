package db_test

import (
	"fmt"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/upload"
	"millrace/internal/id"
	"millrace/internal/storage/db/dbtest"
)

// TestMigrateUploadSweep: of uploads of before it is known which of them a sweep has to look at, and which are of no
// use any more.
func TestMigrateUploadSweep(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := open(t, url)
		ctx := t.Context()
		a := asset.Asset{ID: "a1", Environment: "env", Status: asset.Ready, Media: "m"}
		if err := d.Assets().Insert(ctx, asset.Change{Asset: a}); err != nil {
			t.Fatal(err)
		}
		if err := d.MigrateTo(ctx, 35); err != nil {
			t.Fatal(err)
		}
		const week = 7 * 24 * time.Hour
		type row struct {
			status        upload.Status
			asset         id.Asset
			due, unneeded time.Duration // 0: never
		}
		rows := map[id.Upload]row{
			"waiting":   {upload.Waiting, "", 1000*time.Millisecond + week, 0},
			"cancelled": {upload.Cancelled, "", 2000 * time.Millisecond, 2000 * time.Millisecond},
			"timed out": {upload.TimedOut, "", 2000 * time.Millisecond, 2000 * time.Millisecond},
			"errored":   {upload.Errored, "gone", 2000 * time.Millisecond, 2000 * time.Millisecond},
			"there":     {upload.AssetCreated, "a1", 0, 0},
			"deleted":   {upload.AssetCreated, "gone", 0, 2000 * time.Millisecond},
		}
		for key, r := range rows {
			err := d.Exec(ctx, fmt.Sprintf(`INSERT INTO uploads (id, environment_id, secret_hash, secret, status,
				media_id, asset_id, size, document, created_at, updated_at, revision)
				VALUES ('%s', 'env', '%s', '', '%s', 'm-%s', '%s', 0, '{"timeout":60}', 1000, 2000, 1)`,
				key, key, r.status, key, r.asset))
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open(t, url)
		late, err := d.Uploads().Overdue(ctx, time.UnixMilli(0).Add(2*week), upload.Overdue{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		due := map[id.Upload]time.Duration{}
		for _, o := range late {
			due[o.ID] = o.Due.Sub(time.UnixMilli(0))
		}
		for key, r := range rows {
			u, err := d.Uploads().Find(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			unneeded := time.Duration(0)
			if !u.Unneeded.IsZero() {
				unneeded = u.Unneeded.Sub(time.UnixMilli(0))
			}
			if due[key] != r.due || unneeded != r.unneeded || u.Cleared != (r.due == 0) {
				t.Errorf("%s: due at %v, unneeded since %v, cleared %t; want %v, %v",
					key, due[key], unneeded, u.Cleared, r.due, r.unneeded)
			}
		}
	})
}
