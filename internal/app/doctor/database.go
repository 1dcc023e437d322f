package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
	_ "modernc.org/sqlite"             // driver sqlite

	"millrace/internal/config"
)

// SQLite checks that the database file can be opened, locked, written and read. All of it is rolled back. A file that
// is not there yet stays so: the check uses another one beside it.
type SQLite struct{ Path string }

// Name implements Check.
func (SQLite) Name() string { return "database" }

// Run implements Check.
func (s SQLite) Run(ctx context.Context) Finding {
	const mend = "Give the file and its folder to the user that runs millrace (chown), or name another file with " +
		"--database-url sqlite:/path/to/file.db."
	path := s.Path
	if err := unreachable(path); err != nil {
		return problem(mend, "%s can't be reached: %v", path, err)
	}
	if !exists(path) {
		dir, err := os.MkdirTemp(nearest(filepath.Dir(path)), ".millrace-doctor-*")
		if err != nil {
			return problem(mend, "%s is not there and cannot be made: %v", s.Path, cause(err))
		}
		defer func() { _ = os.RemoveAll(dir) }() // a folder of our own
		path = filepath.Join(dir, "try.db")
	}
	dsn := (&url.URL{
		Scheme:   "file",
		Opaque:   (&url.URL{Path: path}).EscapedPath(),
		RawQuery: "_txlock=immediate&_pragma=busy_timeout(5000)",
	}).String()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return problem(mend, "%s cannot be opened: %v", s.Path, err)
	}
	defer func() { _ = db.Close() }() // nothing was kept
	db.SetMaxOpenConns(1)
	version, err := tryRows(ctx, db, "SELECT sqlite_version()")
	switch {
	case err == nil && path == s.Path:
		return ok("SQLite %s, %s can be written", version, s.Path)
	case err == nil:
		return ok("SQLite %s, %s will be made at the first start", version, s.Path)
	case strings.Contains(err.Error(), "SQLITE_BUSY"):
		return problem("Find the program with fuser "+s.Path+", and stop it if it is not millrace.",
			"%s is locked by another program", s.Path)
	case strings.Contains(err.Error(), "SQLITE_NOTADB"), strings.Contains(err.Error(), "SQLITE_CORRUPT"),
		strings.Contains(err.Error(), "malformed"), strings.Contains(err.Error(), "not a database"):
		return problem("Put back a backup; keep the broken file.", "%s is damaged or no SQLite file", s.Path)
	}
	return problem(mend, "%s cannot be used: %v", s.Path, err)
}

// tryRows makes a table, writes a row, reads it and rolls all of it back. It gives the response to the version query.
func tryRows(ctx context.Context, db *sql.DB, versionQuery string) (version string, err error) {
	if err = db.QueryRowContext(ctx, versionQuery).Scan(&version); err != nil {
		return "", fmt.Errorf("read version: %w", err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return "", fmt.Errorf("begin transaction: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // rolling back is the aim; what could be lost is nothing
	name := "millrace_doctor_" + strings.ToLower(rand.Text())
	if _, err := tx.ExecContext(ctx, "CREATE TABLE "+name+" (n bigint)"); err != nil {
		return "", fmt.Errorf("make table: %w", err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+name+" VALUES (42)"); err != nil { //nolint:gosec // the name is random letters of our own
		return "", fmt.Errorf("write row: %w", err)
	}
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT n FROM "+name).Scan(&n); err != nil {
		return "", fmt.Errorf("read row: %w", err)
	}
	if n != 42 {
		return "", fmt.Errorf("read row: wrote 42 and read %d", n)
	}
	return version, nil
}

// PostgreSQL checks that the server can be reached, tables be made, rows be written and read, and that its clock agrees
// with ours.
type PostgreSQL struct {
	URL config.Secret
	Now func() time.Time
}

// Name implements Check.
func (PostgreSQL) Name() string { return "database" }

// Differences of clocks: leases and schedules are compared across machines.
const (
	skewNoticed = 2 * time.Second
	skewHarmful = 30 * time.Second
)

const oldestPostgres = 130000 // version 13

// Run implements Check.
func (p PostgreSQL) Run(ctx context.Context) Finding {
	db, err := sql.Open("pgx", p.URL.Reveal())
	if err != nil {
		return problem("Write it as postgres://user:password@host:5432/name.", "the database URL cannot be read")
	}
	defer func() { _ = db.Close() }() // nothing was kept
	var number int
	begin := p.Now()
	if err = db.QueryRowContext(ctx, "SELECT current_setting('server_version_num')::int").Scan(&number); err != nil {
		return p.explain(err)
	}
	version, err := tryRows(ctx, db, "SELECT current_setting('server_version')")
	if err != nil {
		return p.explain(err)
	}
	took := p.Now().Sub(begin)
	if number < oldestPostgres {
		return problem("Use PostgreSQL 13 or later.", "PostgreSQL %s is too old", version)
	}
	skew, err := p.skew(ctx, db)
	if err != nil {
		return p.explain(err)
	}
	const mendClock = "Keep the clocks of both machines right with systemd-timesyncd or chrony."
	text := fmt.Sprintf("PostgreSQL %s, tables can be made and rows written", version)
	switch {
	case skew.Abs() > skewHarmful:
		return problem(mendClock, "%s, but its clock is %s off this machine's", text, skew.Round(time.Second))
	case skew.Abs() > skewNoticed:
		return warning(mendClock, "%s; its clock is %s off this machine's", text, skew.Round(100*time.Millisecond))
	case took > time.Second:
		return warning("Put the database nearer to this machine.", "%s; that took %s", text,
			took.Round(10*time.Millisecond))
	}
	return ok("%s", text)
}

// skew is how far the server's clock is ahead of ours.
func (p PostgreSQL) skew(ctx context.Context, db *sql.DB) (time.Duration, error) {
	var micros int64
	before := p.Now()
	if err := db.QueryRowContext(ctx,
		"SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(&micros); err != nil {
		return 0, fmt.Errorf("read clock: %w", err)
	}
	middle := before.Add(p.Now().Sub(before) / 2)
	return time.UnixMicro(micros).Sub(middle), nil
}

// explain says what to do about an error of the server or on the way to it.
func (p PostgreSQL) explain(err error) Finding {
	where := cmp.Or(config.HostsOf(p.URL), "the server")
	if pg, is := errors.AsType[*pgconn.PgError](err); is {
		switch pg.Code {
		case "28P01", "28000":
			return problem("Correct user and password in database-url, or allow this machine in pg_hba.conf.",
				"%s refuses the user: %s", where, pg.Message)
		case "3D000":
			return problem("Make it: createdb NAME.", "%s: %s", where, pg.Message)
		case "42501":
			return problem("Allow it: GRANT CREATE, USAGE ON SCHEMA public TO the user.", "%s: %s", where, pg.Message)
		case "53300":
			return problem("Raise max_connections, or close other clients.", "%s: %s", where, pg.Message)
		case "25006":
			return problem("Name the primary server in database-url.", "%s is a read-only copy", where)
		}
		return problem("Ask the database's administrator.", "%s: %s (%s)", where, pg.Message, pg.Code)
	}
	if _, is := errors.AsType[*net.DNSError](err); is {
		return problem("Correct the host in database-url.", "no machine is called %s", where)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return problem("Check host and port in database-url, and the firewall between.", "%s does not respond", where)
	}
	if n, is := errors.AsType[*net.OpError](err); is {
		return problem("Start the database, or correct host and port in database-url.", "%s cannot be reached: %v",
			where, n.Err)
	}
	return problem("Check database-url.", "%s cannot be used: %v", where, err)
}
