package db_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestBeforeMigration is called once, when there are rows of an older schema, which stay as they are if it fails. A
// newer schema is refused where no other version can be running.
func TestBeforeMigration(t *testing.T) {
	t.Parallel()
	newest, err := db.SchemaVersion()
	must(t, err)
	const older = 37
	dbtest.Each(t, func(t *testing.T, url string) {
		var called []string
		var refuse error
		open := func() (*db.DB, error) {
			return db.Open(t.Context(), db.Options{
				URL: url, MasterKey: masterkey.Of(masterkey.Key{}),
				BeforeMigration: func(ctx context.Context, from, to int64) error {
					dump, err := db.OpenDump(ctx, url)
					if err != nil {
						return err
					}
					called = append(called, fmt.Sprint(from, to, dump.Schema))
					return errors.Join(dump.Close(), refuse)
				},
			})
		}
		d, err := open()
		must(t, err)
		must(t, d.MigrateTo(t.Context(), older))
		must(t, d.Close())
		if len(called) > 0 {
			t.Errorf("for a new database it is called with %q", called)
		}
		refuse = errors.New("the disk is full")
		if _, err = open(); !errors.Is(err, refuse) {
			t.Fatalf("when it fails: %v", err)
		}
		dump, err := db.OpenDump(t.Context(), url)
		must(t, err)
		if dump.Schema != older {
			t.Errorf("when it fails, the schema is %d", dump.Schema)
		}
		must(t, dump.Close())
		refuse = nil
		for range 2 {
			d, err = open()
			must(t, err)
			must(t, d.Close())
		}
		if once := fmt.Sprint(older, newest, older); !slices.Equal(called, []string{once, once}) {
			t.Errorf("it is called with %q, and %q is wanted, when it failed and after that", called, once)
		}
		d, err = open()
		must(t, err)
		must(t, d.Exec(t.Context(), fmt.Sprintf("INSERT INTO goose_db_version (version_id, is_applied) "+
			"VALUES (%d, TRUE)", newest+1)))
		must(t, d.Close())
		d, err = open()
		if !strings.HasPrefix(url, "postgres") {
			if err == nil || !strings.Contains(err.Error(), "this program knows") {
				t.Errorf("a newer schema: %v", err)
			}
			return
		}
		must(t, err) // while a fleet is upgraded
		must(t, d.Close())
	})
}
