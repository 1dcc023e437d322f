package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

const (
	// WAL lets readers go on while one writes. NORMAL loses no committed transaction when the process dies, only when the power does.
	pragmas     = "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=foreign_keys(1)"
	writePragma = "&_txlock=immediate"
	readPragma  = "&_pragma=query_only(1)"
	readers     = 4
)

type sqliteEngine struct {
	db          *bun.DB
	write, read *sql.DB
	jobs        *river.Client[*sql.Tx]
}

func openSQLite(ctx context.Context, path string, o Options) (_ *DB, err error) {
	if err := makeFile(path); err != nil {
		return nil, err
	}
	name := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + pragmas
	write, err := sql.Open("sqlite", name+writePragma)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	e := &sqliteEngine{write: write}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	write.SetMaxOpenConns(1)
	driver := riversqlite.New(write)
	if err := migrateSQLite(ctx, driver, write, o); err != nil {
		return nil, err
	}
	if e.read, err = sql.Open("sqlite", name+readPragma); err != nil {
		return nil, fmt.Errorf("open database for reading: %w", err)
	}
	e.read.SetMaxOpenConns(readers)
	e.read.SetMaxIdleConns(readers)
	if e.jobs, err = river.NewClient(driver, &river.Config{Logger: o.Logger}); err != nil {
		return nil, fmt.Errorf("make job client: %w", err)
	}
	e.db = bun.NewDB(write, sqlitedialect.New())
	return &DB{write: e.db, read: bun.NewDB(e.read, sqlitedialect.New()), engine: e, logger: o.Logger}, nil
}

// makeFile makes the file readable for its owner only: it holds stream keys.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make folder of database: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator's own choice of path
	if err != nil {
		return fmt.Errorf("open database file: %w", err)
	}
	return f.Close()
}

func migrateSQLite(ctx context.Context, driver *riversqlite.Driver, write *sql.DB, o Options) error {
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: o.Logger})
	if err != nil {
		return fmt.Errorf("prepare migration of jobs: %w", err)
	}
	up := func() error {
		if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return fmt.Errorf("migrate jobs: %w", err)
		}
		return migrate(ctx, goose.DialectSQLite3, write)
	}
	const tries = 5 // another process may be at it at this very moment; what it has done need not be done again
	for range tries - 1 {
		if err = up(); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return up()
}

func (e *sqliteEngine) begin(ctx context.Context, fn func(context.Context, tx) error) error {
	return e.db.RunInTx(ctx, nil, func(ctx context.Context, t bun.Tx) error {
		return fn(ctx, tx{IDB: t, jobs: jobsIn[*sql.Tx]{e.jobs, t.Tx}})
	})
}

func (e *sqliteEngine) client(cfg *river.Config) (JobClient, error) {
	return river.NewClient(riversqlite.New(e.write), cfg)
}

func (e *sqliteEngine) now() string {
	return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
}
func (e *sqliteEngine) lastAttempt() string { return "attempted_by ->> '$[#-1]'" }
func (e *sqliteEngine) cancelled() string   { return "metadata ->> 'cancel_attempted_at' IS NOT NULL" }
func (e *sqliteEngine) jobKey() string      { return "args ->> 'key'" }

func (e *sqliteEngine) close() error {
	var errs []error
	if e.read != nil {
		errs = append(errs, e.read.Close())
	}
	return errors.Join(append(errs, e.write.Close())...) // the last one out folds the WAL back into the file
}
