package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"millrace/internal/masterkey"
)

const (
	migrationLock = 0x6d696c6c72616365 // "millrace"
	maxConns      = 16                 // unless the URL says pool_max_conns
	leastConns    = 2                  // whatever it says: a migration has one, and asks for another

	// lockTime is how long a migration waits for a table that others use: everybody who wants it afterwards waits
	// behind it. It is less than deadlock_timeout, so that the migration gives way and not the other.
	lockTime  = "500ms"
	heldTable = "55P03" // lock_not_available
)

type postgresEngine struct {
	pool *pgxpool.Pool
	std  *sql.DB
	own  *sql.DB // one connection beside the pool, opened when it is needed
	// server leads to the server itself, for what a session keeps: locks and listening. The pool may lead to a pooler,
	// which has a session for each transaction; without one they are the same.
	server *pgxpool.Pool
	db     *bun.DB
	jobs   *river.Client[pgx.Tx]
	node   nodeLock

	events  *news
	rights  *rights
	notices notices
	logger  *slog.Logger
}

func openPostgres(ctx context.Context, o Options) (_ *DB, err error) {
	cfg, err := parsePostgres(o.URL)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(o.URL, "pool_max_conns=") {
		cfg.MaxConns = maxConns
	}
	direct, err := directly(o, cfg)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	e := &postgresEngine{
		pool: pool, server: pool, std: sql.OpenDB(reached{stdlib.GetPoolConnector(pool)}), events: &news{},
		rights: &rights{}, logger: o.Logger,
	}
	e.std.SetMaxIdleConns(0) // the pool below keeps them
	e.own = sql.OpenDB(reached{stdlib.GetConnector(*direct.ConnConfig)})
	e.own.SetMaxOpenConns(1)
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if o.Direct != "" {
		server, failed := pgxpool.NewWithConfig(ctx, direct)
		if failed != nil {
			return nil, fmt.Errorf("open database: %w", failed)
		}
		e.server = server
	}
	if err = keepsSessions(ctx, direct.ConnConfig); err != nil {
		return nil, away(ctx, err)
	}
	vault, master, err := e.migrate(ctx, o)
	if err == nil {
		err = e.same(ctx)
	}
	if err != nil {
		return nil, away(ctx, err)
	}
	driver := riverpgxv5.New(pool)
	if e.jobs, err = river.NewClient(silentDriver{driver}, &river.Config{Logger: riverLog(o.Logger)}); err != nil {
		return nil, fmt.Errorf("make job client: %w", err)
	}
	e.db = bun.NewDB(e.std, pgdialect.New())
	return &DB{
		write: e.db, read: e.db, own: bun.NewDB(e.own, pgdialect.New()), engine: audited{e}, news: e.events,
		rights: e.rights, vault: vault, master: master, logger: o.Logger,
	}, nil
}

// migrate lets one process at a time migrate: several that boot together on an empty database would trip over each
// other.
func (p *postgresEngine) migrate(ctx context.Context, o Options) (*masterkey.Vault, string, error) {
	std := sql.OpenDB(reached{stdlib.GetConnector(*p.server.Config().ConnConfig, stdlib.OptionAfterConnect(
		func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, "SET lock_timeout = '"+lockTime+"'")
			return err
		}))})
	defer func() { _ = std.Close() }() // nothing is under way
	m, err := rivermigrate.New(riverpgxv5.New(p.server), &rivermigrate.Config{Logger: riverLog(o.Logger)})
	if err != nil {
		return nil, "", fmt.Errorf("prepare migration of jobs: %w", err)
	}
	conn, err := p.server.Acquire(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("connect to database: %w", err)
	}
	defer conn.Release()
	if _, err = conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		return nil, "", fmt.Errorf("lock migration: %w", err)
	}
	defer func() { // a connection that can't unlock must not go back into the pool
		if _, failed := conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)",
			int64(migrationLock)); failed != nil {
			_ = conn.Conn().Close(context.WithoutCancel(ctx))
		}
	}()
	newer, err := o.prepare(ctx, std)
	if err != nil {
		return nil, "", err
	}
	if newer {
		return unlock(ctx, std, o.MasterKey)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, "", fmt.Errorf("migrate jobs: %w", err)
	}
	return o.migrate(ctx, goose.DialectPostgres, std)
}

// held reports whether a migration has waited too long for a table.
func held(err error) bool {
	pg, is := errors.AsType[*pgconn.PgError](err)
	return is && pg.Code == heldTable
}

// begin opens a pgx transaction on the connection under a bun connection, so that bun's queries and River's inserts are
// one transaction.
func (p *postgresEngine) begin(ctx context.Context, fn func(context.Context, tx) error) error {
	conn, err := p.db.Conn(ctx)
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
	events, queues := &afterCommit{}, map[string]bool{}
	err = pgx.BeginFunc(ctx, raw, func(t pgx.Tx) error {
		return fn(ctx, tx{
			IDB: conn, scan: p.db.ScanRows, events: events,
			jobs: jobsIn[pgx.Tx]{client: p.jobs, tx: t, inserted: func(queue string) { queues[queue] = true }},
		})
	})
	if err == nil {
		p.notices.add(events.some, queues)
	}
	return away(ctx, err)
}

func (p *postgresEngine) client(cfg *river.Config) (JobClient, error) {
	return river.NewClient(listeningDriver{riverpgxv5.New(p.pool), riverpgxv5.New(p.server)}, cfg)
}

const postgresNow = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS bigint)"

func (p *postgresEngine) now() string { return postgresNow }

func (p *postgresEngine) lastAttempt() string {
	return "attempted_by[array_length(attempted_by, 1)]"
}

func (p *postgresEngine) cancelled() string {
	return "metadata ->> 'cancel_attempted_at' IS NOT NULL"
}
func (p *postgresEngine) jobKey() string { return "args ->> 'key'" }

func (p *postgresEngine) count(name string) string {
	return "COALESCE((metadata ->> '" + name + "')::int, 0)"
}

func (p *postgresEngine) countUp(name string) string {
	return "jsonb_set(metadata, '{" + name + "}', to_jsonb(" + p.count(name) + " + 1))"
}

func (p *postgresEngine) later() string { return "clock_timestamp() + ? * interval '1 millisecond'" }

func (p *postgresEngine) close() error {
	p.node.release()
	err := errors.Join(p.own.Close(), p.std.Close())
	p.pool.Close()
	p.server.Close()
	return err
}
