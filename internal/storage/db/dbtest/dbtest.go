// Package dbtest provides tests with a fresh database of each engine: SQLite always, PostgreSQL where
// MILLRACE_TEST_POSTGRES is the URL of an admin database (with MILLRACE_TEST_REQUIRE=1 its absence is a failure). Only
// tests import it.
package dbtest

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
)

const (
	adminURL = "MILLRACE_TEST_POSTGRES"
	require  = "MILLRACE_TEST_REQUIRE"
	// poolerAddr is where a pooler in front of that server listens, through which databases are opened.
	poolerAddr = "MILLRACE_TEST_POOLER"

	scheme = "sqlite://"
)

// template is the file of a migrated database, once there is one.
var template struct { //nolint:gochecknoglobals // a cache of the test's process
	sync.Mutex

	content []byte
}

// Engines gives each engine's name with what makes an empty database of it, which goes away with the test.
func Engines() map[string]func(t *testing.T) (url string) {
	sqlite := func(t *testing.T) string { t.Helper(); return SQLite(t) }
	return map[string]func(t *testing.T) (url string){"sqlite": sqlite, "postgres": Postgres}
}

// Each runs test on each engine with the URL of an empty database.
func Each(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	for name, fresh := range Engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

// EachOpen runs test on each engine with an empty database.
func EachOpen(t *testing.T, test func(t *testing.T, d *db.DB)) {
	t.Helper()
	Each(t, func(t *testing.T, url string) {
		t.Helper()
		test(t, Open(t, url))
	})
}

// SQLite gives the URL of a database in a folder of the test.
func SQLite(t testing.TB) string {
	t.Helper()
	return scheme + filepath.Join(t.TempDir(), "a b?#%.db") // a name that has to be escaped
}

// Postgres gives the URL of a fresh database, or skips the test.
func Postgres(t *testing.T) string {
	t.Helper()
	admin := os.Getenv(adminURL) //nolint:forbidigo // a test's own switch
	if admin == "" {
		if os.Getenv(require) != "" { //nolint:forbidigo // a test's own switch
			t.Fatalf("%s is set but %s is not: it has to hold the URL of an admin database", require, adminURL)
		}
		t.Skipf("set %s to the URL of an admin database to run this on PostgreSQL too", adminURL)
	}
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatalf("%s is not a URL", adminURL)
	}
	name := "millrace_test_" + strings.ToLower(id.New())[:20]
	execute(t, admin, "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(t, admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

func execute(t *testing.T, admin, query string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		t.Fatalf("connect to the admin database: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// Open opens a database and closes it when the test ends. One of SQLite that is not there yet is filled.
func Open(t testing.TB, url string) *db.DB {
	t.Helper()
	if strings.HasPrefix(url, scheme) {
		Fill(t, url)
	}
	o := db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})}
	pooler := os.Getenv(poolerAddr) //nolint:forbidigo // a test's own switch
	if pooler != "" && strings.HasPrefix(url, "postgres://") {
		o.URL, o.Direct = At(t, url, pooler), url
	}
	d, err := db.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func open(ctx context.Context, url string) (*db.DB, error) {
	return db.Open(ctx, db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
}

// Fill writes a database that has been opened once, with a master key of zeros, to a file or the URL of one, unless it
// is there. It is a copy of the first one: to migrate each takes a third of a second, and ten times that with the race
// detector.
func Fill(t testing.TB, url string) {
	t.Helper()
	name := strings.TrimPrefix(url, scheme)
	_, err := os.Stat(name)
	if err == nil {
		return
	}
	var content []byte
	if errors.Is(err, fs.ErrNotExist) {
		content, err = migrated(context.WithoutCancel(t.Context()))
	}
	if err == nil {
		err = os.WriteFile(name, content, 0o600)
	}
	if err != nil {
		t.Fatalf("copy the database that was migrated: %v", err)
	}
}

// migrated has what is in the file of a database that was opened for the first time.
func migrated(ctx context.Context) ([]byte, error) {
	template.Lock()
	defer template.Unlock()
	if template.content != nil {
		return template.content, nil
	}
	folder, err := os.MkdirTemp("", "millrace-dbtest-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "template.db")
	d, err := open(ctx, scheme+file)
	if err != nil {
		return nil, err
	}
	if err = d.Close(); err == nil {
		template.content, err = os.ReadFile(file) //nolint:gosec // made above
	}
	return template.content, err
}
