package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"

	"millrace/internal/control/job"
)

type loadSQLite struct {
	db     *sql.DB
	river  *river.Client[*sql.Tx]
	lock   *sqliteEngine // what keeps services out
	logger *slog.Logger
}

func openLoadSQLite(ctx context.Context, rawURL string, logger *slog.Logger) (_ *loadSQLite, err error) {
	path, err := sqlitePath(rawURL)
	if err != nil {
		return nil, err
	}
	if path, err = makeFile(path); err != nil {
		return nil, err
	}
	l := &loadSQLite{lock: &sqliteEngine{path: path}, logger: logger}
	if err = l.lock.occupy(ctx, ""); err != nil {
		return nil, err
	}
	release, err := openAlone(ctx, path)
	if err == nil {
		defer release()
		l.db, err = sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+writePragmas)
	}
	if err == nil {
		l.db.SetMaxOpenConns(1)
		l.river, err = river.NewClient(riversqlite.New(l.db), &river.Config{Logger: riverLog(logger)})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), l.close())
	}
	return l, nil
}

func (l *loadSQLite) pool() *sql.DB             { return l.db }
func (*loadSQLite) dialect() goose.Dialect      { return goose.DialectSQLite3 }
func (*loadSQLite) inUse(context.Context) error { return nil } // by the lock

func (l *loadSQLite) makeJobs(ctx context.Context) error {
	m, err := rivermigrate.New(riversqlite.New(l.db), &rivermigrate.Config{Logger: riverLog(l.logger)})
	if err == nil {
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return full(fmt.Errorf("make tables of jobs: %w", err))
	}
	return nil
}

func (l *loadSQLite) within(ctx context.Context, fn func(queries, func(job.Insert) error) error) error {
	t, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return full(fmt.Errorf("begin to write rows: %w", err))
	}
	jobs := tx{jobs: jobsIn[*sql.Tx]{client: l.river, tx: t}}
	err = fn(t, func(j job.Insert) error { return jobs.enqueue(ctx, []job.Insert{j}) })
	if err != nil {
		_ = t.Rollback() // nothing has happened then, whatever it says
		return err
	}
	if err = t.Commit(); err != nil {
		return full(fmt.Errorf("write rows: %w", err))
	}
	return nil
}

func (l *loadSQLite) close() (err error) {
	if l.db != nil {
		err = l.db.Close() // folds the log back into the file
	}
	return errors.Join(err, l.lock.unlock())
}
