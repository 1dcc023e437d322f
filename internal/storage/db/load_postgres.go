package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"millrace/internal/control/job"
)

type loadPostgres struct {
	conns  *pgxpool.Pool
	std    *sql.DB
	river  *river.Client[pgx.Tx]
	logger *slog.Logger
}

func openLoadPostgres(ctx context.Context, rawURL string, logger *slog.Logger) (_ *loadPostgres, err error) {
	cfg, err := parsePostgres(rawURL)
	if err != nil {
		return nil, err
	}
	l := &loadPostgres{logger: logger}
	if l.conns, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	l.std = sql.OpenDB(reached{stdlib.GetPoolConnector(l.conns)})
	l.std.SetMaxIdleConns(0) // the pool below keeps them
	if l.river, err = river.NewClient(silentDriver{riverpgxv5.New(l.conns)},
		&river.Config{Logger: riverLog(logger)}); err != nil {
		return nil, errors.Join(fmt.Errorf("make job client: %w", err), l.close())
	}
	return l, nil
}

func (l *loadPostgres) pool() *sql.DB        { return l.std }
func (*loadPostgres) dialect() goose.Dialect { return goose.DialectPostgres }

// inUse says that a node's row is valid still.
func (l *loadPostgres) inUse(ctx context.Context) error { return nodesRun(ctx, l.std) }

// nodesRun is ErrOccupied when a node's row is valid still.
func nodesRun(ctx context.Context, q queries) error {
	var node string
	err := q.QueryRowContext(ctx, "SELECT id FROM nodes WHERE valid_until > "+(*postgresEngine)(nil).now()+
		" ORDER BY id LIMIT 1").Scan(&node)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look for nodes: %w", err)
	}
	return fmt.Errorf("%w: stop node %s, and all others", ErrOccupied, node)
}

func (l *loadPostgres) makeJobs(ctx context.Context) error {
	m, err := rivermigrate.New(riverpgxv5.New(l.conns), &rivermigrate.Config{Logger: riverLog(l.logger)})
	if err == nil {
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return away(ctx, fmt.Errorf("make tables of jobs: %w", err))
	}
	return nil
}

func (l *loadPostgres) within(ctx context.Context, fn func(queries, func(job.Insert) error) error) error {
	conn, err := l.std.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	defer func() { _ = conn.Close() }() // gives it back to the pool
	var raw *pgx.Conn
	if err = conn.Raw(func(driverConn any) error {
		std, ok := driverConn.(reachedConn)
		if !ok {
			return fmt.Errorf("connection is a %T", driverConn)
		}
		raw = std.Conn.Conn()
		return nil
	}); err != nil {
		return fmt.Errorf("reach PostgreSQL connection: %w", err)
	}
	return away(ctx, pgx.BeginFunc(ctx, raw, func(t pgx.Tx) error {
		jobs := tx{jobs: jobsIn[pgx.Tx]{client: l.river, tx: t}}
		return fn(conn, func(j job.Insert) error { return jobs.enqueue(ctx, []job.Insert{j}) })
	}))
}

func (l *loadPostgres) close() error {
	err := l.std.Close()
	l.conns.Close()
	return err //nolint:wrapcheck // by Load
}
