package db_test

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/audit"
	"millrace/internal/fault"
	"millrace/internal/storage/db/dbtest"
)

// TestLocked: while another process has SQLite's lock, a change that somebody asks for is refused, with the time after
// which to ask again: the one that waits for the lock itself, and those that wait behind it.
func TestLocked(t *testing.T) {
	t.Parallel()
	at := dbtest.SQLite(t)
	d := dbtest.Open(t, at)
	_, path, _ := strings.Cut(at, "://")
	other, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_txlock=immediate")
	must(t, err)
	t.Cleanup(func() { _ = other.Close() })
	lock, err := other.BeginTx(t.Context(), nil)
	must(t, err)
	results := make(chan error, 3)
	asked := audit.With(t.Context(), audit.Entry{At: time.Now()})
	for range cap(results) {
		go func() { results <- d.Sessions().DeleteSession(asked, "x") }()
	}
	for range cap(results) {
		if err := <-results; !fault.Is(err, fault.Unavailable) || fault.RetryAfter(err) != 5*time.Second {
			t.Errorf("while the database is locked: %v, again in %v", err, fault.RetryAfter(err))
		}
	}
	must(t, lock.Rollback())
	must(t, d.Sessions().DeleteSession(t.Context(), "x"))
}
