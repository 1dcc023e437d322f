package db_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"millrace/internal/fault"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestReadOnlyServerIsLeft: a connection to a server that takes no writes any more is not used again. The next one
// comes to the server that has taken its place.
func TestReadOnlyServerIsLeft(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	d := dbtest.Open(t, url)
	must(t, d.Execute(t.Context(), "SET default_transaction_read_only = on"))
	refused := 0
	for range 5 {
		if err := d.Execute(t.Context(), "DELETE FROM owners"); fault.Is(err, fault.Unavailable) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused != 1 {
		t.Errorf("of 5 changes over a connection that takes none %d are refused, want the first alone", refused)
	}
}

// TestReadOnlyServerIsNotOpened: a standby is not read from either. A service that comes to one waits.
func TestReadOnlyServerIsNotOpened(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	dbtest.Open(t, url)
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	_, err = conn.Exec(t.Context(), "DO $$ BEGIN EXECUTE format("+
		"'ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$")
	must(t, err)
	must(t, conn.Close(t.Context()))
	d, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("open: %v, want that the database is away", err)
	}
	if err == nil {
		must(t, d.Close())
	}
}
