package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/jackc/pgx/v5/stdlib"
)

// Hold keeps services away from the database at a URL until release, so that it stays as it is. One that runs on it is
// ErrOccupied. On SQLite a service that is started meanwhile is refused; on PostgreSQL it waits. Nothing is changed.
func Hold(ctx context.Context, rawURL string) (release func() error, err error) {
	if isPostgres(rawURL) {
		return holdPostgres(ctx, rawURL)
	}
	path, err := sqlitePath(rawURL)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, fmt.Errorf("find database file: %w", err)
	}
	lock := &sqliteEngine{path: path}
	return lock.unlock, lock.occupy(ctx, "")
}

// holdPostgres has the lock that every process takes while it opens the database.
func holdPostgres(ctx context.Context, rawURL string) (release func() error, err error) {
	cfg, err := parsePostgres(rawURL)
	if err != nil {
		return nil, err
	}
	if err = keepsSessions(ctx, cfg.ConnConfig); err != nil {
		return nil, away(ctx, err)
	}
	pool := sql.OpenDB(reached{stdlib.GetConnector(*cfg.ConnConfig)})
	pool.SetMaxOpenConns(1) // it has the lock for as long as it is open
	defer func() {
		if err != nil {
			err = errors.Join(err, pool.Close())
		}
	}()
	if _, err = pool.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		return nil, away(ctx, fmt.Errorf("keep services away: %w", err))
	}
	if err = nodesRun(ctx, pool); err != nil {
		return nil, err
	}
	return func() error {
		// The lock ends with the connection too, but the server may notice later that this has gone.
		_, _ = pool.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock_all()")
		return pool.Close()
	}, nil
}
