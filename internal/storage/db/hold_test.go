package db_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestHold finds a service that runs, and keeps one away: on SQLite it is refused, on PostgreSQL it waits for the end.
func TestHold(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
		must(t, err)
		sqlite := url[0] == 's'
		must(t, d.Occupy(t.Context(), "a", 0))
		valid := fmt.Sprintf("INSERT INTO nodes (id, seen_at, run, valid_until) VALUES ('a', 0, 'r', %d)",
			time.Now().Add(time.Hour).UnixMilli())
		if !sqlite {
			must(t, d.Exec(t.Context(), valid))
		}
		if _, err = db.Hold(t.Context(), url); !errors.Is(err, db.ErrOccupied) {
			t.Fatalf("while a service runs: %v", err)
		}
		must(t, d.Exec(t.Context(), "DELETE FROM nodes"))
		want, _ := dumped(t, url)
		must(t, d.Close())
		other := dbtest.Open(t, url)
		release, err := db.Hold(t.Context(), url)
		must(t, err)
		if sqlite {
			if err = other.Occupy(t.Context(), "b", 0); !errors.Is(err, db.ErrOccupied) {
				t.Errorf("a service that is started meanwhile: %v", err)
			}
			must(t, release())
			must(t, other.Occupy(t.Context(), "b", 0))
		} else {
			locks := "pg_locks WHERE locktype = 'advisory' AND granted AND database = " +
				"(SELECT oid FROM pg_database WHERE datname = current_database())"
			if held, err := other.Texts(t.Context(), "objid", locks); err != nil || len(held) != 1 {
				t.Errorf("the lock that services take when they start: %q, %v", held, err)
			}
			must(t, release())
			if held, err := other.Texts(t.Context(), "objid", locks); err != nil || len(held) != 0 {
				t.Errorf("when it is over: %q, %v", held, err)
			}
		}
		if got, _ := dumped(t, url); !reflect.DeepEqual(got, want) {
			t.Error("the database is changed")
		}
	})
}
