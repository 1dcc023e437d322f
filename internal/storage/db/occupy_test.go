package db_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"millrace/internal/fault"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestOccupy keeps a second process out: of SQLite any, of PostgreSQL one with the same name.
func TestOccupy(t *testing.T) {
	t.Parallel()
	for name, fresh := range dbtest.Engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := fresh(t)
			first, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
			must(t, err)
			must(t, first.Occupy(t.Context(), "a", 0))
			must(t, first.KeepNode(t.Context()))
			second := dbtest.Open(t, url) // as for a list of tokens
			if err := second.Occupy(t.Context(), "a", 0); !errors.Is(err, db.ErrOccupied) {
				t.Errorf("the same name: %v", err)
			}
			if err := second.Occupy(t.Context(), "b", 0); (err == nil) != (name == "postgres") {
				t.Errorf("another name: %v", err)
			}
			must(t, first.Close())
			must(t, second.Occupy(t.Context(), "a", 0))
		})
	}
}

// TestNodeIsFreeOnceClosed, though PostgreSQL notices much later that the connection has gone.
func TestNodeIsFreeOnceClosed(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	dbtest.Proxy(t, ln, url, true)
	behind := dbtest.At(t, url, ln.Addr().String())
	first, err := db.Open(t.Context(), db.Options{URL: behind, MasterKey: masterkey.Of(masterkey.Key{})})
	must(t, err)
	must(t, first.Occupy(t.Context(), "a", 0))
	must(t, first.Close())
	must(t, dbtest.Open(t, url).Occupy(t.Context(), "a", 0))
}

// TestNodeIsTakenMeanwhile by another process while the connection to PostgreSQL was lost; if by none, it stays this
// one's.
func TestNodeIsTakenMeanwhile(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	first, second := dbtest.Open(t, url), dbtest.Open(t, url)
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	cut := func() {
		var n int
		must(t,
			conn.QueryRow(t.Context(),
				"SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_locks WHERE locktype = 'advisory'"+
					" AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&n))
		if n != 1 {
			t.Fatalf("%d locks are there", n)
		}
	}
	must(t, first.Occupy(t.Context(), "a", 0))
	cut()
	must(t, first.KeepNode(t.Context()))
	if err := second.Occupy(t.Context(), "a", 0); !errors.Is(err, db.ErrOccupied) {
		t.Errorf("after it was taken again: %v", err)
	}
	cut()
	must(t, second.Occupy(t.Context(), "a", 0))
	if err := first.KeepNode(t.Context()); !errors.Is(err, db.ErrOccupied) {
		t.Errorf("the first process is told %v", err)
	}
}

// TestPostgresThatIsAway may come; one that refuses does not change its mind.
func TestPostgresThatIsAway(t *testing.T) {
	t.Parallel()
	_, err := db.Open(t.Context(), db.Options{
		URL: "postgres://u:hunter2@127.0.0.1:1/m", MasterKey: masterkey.Of(masterkey.Key{}),
	})
	if fault.KindOf(err) != fault.Unavailable || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("away: %v of kind %d", err, fault.KindOf(err))
	}
	url := dbtest.Postgres(t)
	if _, err = db.Open(t.Context(), db.Options{
		URL: url[:strings.LastIndex(url, "/")+1] + "no_such_database", MasterKey: masterkey.Of(masterkey.Key{}),
	}); err == nil || fault.KindOf(err) == fault.Unavailable {
		t.Errorf("refused: %v of kind %d", err, fault.KindOf(err))
	}
}

// TestOccupyThroughALink: an SQLite file is the same one by whichever path it is opened.
func TestOccupyThroughALink(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, link := filepath.Join(folder, "real.db"), filepath.Join(t.TempDir(), "link.db")
	first := dbtest.Open(t, file)
	must(t, first.Occupy(t.Context(), "a", 0))
	must(t, os.Symlink(file, link))
	for name, path := range map[string]string{
		"of the file": link, "of the folder": filepath.Join(linkTo(t, folder), "real.db"),
	} {
		if err := dbtest.Open(t, path).Occupy(t.Context(), "b", 0); !errors.Is(err, db.ErrOccupied) {
			t.Errorf("through a link %s: %v", name, err)
		}
	}
}

// linkTo makes a symbolic link to a folder.
func linkTo(t *testing.T, folder string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(folder, link))
	return link
}
