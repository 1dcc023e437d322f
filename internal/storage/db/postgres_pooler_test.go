package db_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
	"millrace/test/services"
)

// pooled starts a pooler in front of an empty database.
func pooled(t *testing.T, mode string) (direct, url string) {
	t.Helper()
	direct = dbtest.Postgres(t)
	required := os.Getenv("MILLRACE_TEST_REQUIRE") != ""
	if _, err := services.PgbouncerPath(); err != nil && !required {
		t.Skip(err)
	}
	s, err := services.Pgbouncer(context.WithoutCancel(t.Context()), direct, mode)
	must(t, err)
	t.Cleanup(s.Stop)
	return direct, s.URL
}

func openWith(t *testing.T, url, direct string) (*db.DB, error) {
	t.Helper()
	d, err := db.Open(t.Context(), db.Options{URL: url, Direct: direct, MasterKey: masterkey.Of(masterkey.Key{})})
	if err == nil {
		t.Cleanup(func() { must(t, d.Close()) })
	}
	return d, err
}

// TestPoolerOfTransactionsIsRefused: a pooler that gives each transaction another session is told from one that keeps
// them, and from the server itself.
func TestPoolerOfTransactionsIsRefused(t *testing.T) {
	t.Parallel()
	direct, url := pooled(t, "transaction")
	if _, err := openWith(t, url, ""); !errors.Is(err, db.ErrPooled) {
		t.Errorf("without the server's own URL: %v", err)
	}
	if _, err := openWith(t, url, url); !errors.Is(err, db.ErrPooled) {
		t.Errorf("with the pooler's in its place: %v", err)
	}
	if release, err := db.Hold(t.Context(), url); !errors.Is(err, db.ErrPooled) {
		t.Errorf("a lock through the pooler: %v", err)
		if err == nil {
			must(t, release())
		}
	}
	_, err := openWith(t, url, dbtest.Postgres(t))
	if err == nil || !strings.Contains(err.Error(), "another database") {
		t.Errorf("with the URL of another database: %v", err)
	}
	_, err = openWith(t, url, direct)
	must(t, err)
	_, session := pooled(t, "session")
	_, err = openWith(t, session, "")
	must(t, err)
}

// TestThroughPooler: through a pooler of transactions two processes are told of each other's events, and know each
// other's names.
func TestThroughPooler(t *testing.T) {
	t.Parallel()
	direct, url := pooled(t, "transaction")
	a, err := openWith(t, url, direct)
	must(t, err)
	b, err := openWith(t, url, direct)
	must(t, err)
	must(t, a.Occupy(t.Context(), "node-a", 0))
	if err := b.Occupy(t.Context(), "node-a", 0); !errors.Is(err, db.ErrOccupied) {
		t.Errorf("a second process of the same name: %v", err)
	}
	must(t, b.Occupy(t.Context(), "node-b", 0))
	must(t, a.KeepNode(t.Context()))
	if free, err := b.LiveStreams().Unlocked(t.Context(), "node-a"); err != nil || free {
		t.Errorf("the lock of a living process is free: %v, %v", free, err)
	}
	for i := range 100 { // more than statements that a session may have by name
		must(t, a.Tell(t.Context(), func() {}, about("x", i)))
	}
}
