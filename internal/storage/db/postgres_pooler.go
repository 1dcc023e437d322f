package db

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// ErrPooled says that a URL leads to a pooler that gives each transaction another session of the server.
var ErrPooled = errors.New("the database's URL leads to a pooler of transactions, such as pgbouncer with " +
	"pool_mode = transaction: give the URL of the server itself as database-direct-url")

var errOther = errors.New("open database: database-direct-url leads to another database than database-url")

const (
	directConns = 4 // unless the URL says pool_max_conns; used while it starts, and then one for listening to jobs
	directIdle  = time.Minute
	// pooledTries is how often sessions are compared.
	pooledTries = 10
)

// directly gives the settings of connections to the server itself, and prepares pooled for a pooler, if there is one.
// Statements by name are of a session: behind a pooler they have none, whichever of its versions it is.
func directly(o Options, pooled *pgxpool.Config) (*pgxpool.Config, error) {
	if o.Direct == "" {
		return pooled, nil
	}
	cfg, err := parsePostgres(o.Direct)
	if err != nil {
		return nil, fmt.Errorf("%w: database-direct-url", err)
	}
	if !strings.Contains(o.Direct, "pool_max_conns=") {
		cfg.MaxConns = directConns
	}
	cfg.MaxConnIdleTime = directIdle
	if conn := pooled.ConnConfig; !strings.Contains(o.URL, "default_query_exec_mode=") {
		conn.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return cfg, nil
}

// same says whether the pool leads to the database that has been opened.
func (p *postgresEngine) same(ctx context.Context) error {
	if p.server == p.pool {
		return nil
	}
	var one, other []byte
	for pool, key := range map[*pgxpool.Pool]*[]byte{p.server: &one, p.pool: &other} {
		err := pool.QueryRow(ctx, "SELECT data_key FROM master_key WHERE one = 1").Scan(key)
		if e, is := errors.AsType[*pgconn.PgError](err); is && e.Code == "42P01" { // there is no such table
			return errOther
		}
		if err != nil {
			return fmt.Errorf("compare database-direct-url with database-url: %w", err)
		}
	}
	if !bytes.Equal(one, other) {
		return errOther
	}
	return nil
}

// keepsSessions is ErrPooled if connections lead to a pooler of transactions. A pooler has numbers of its own for its
// clients' sessions. It keeps them if two clients have two of the server's at the same time, and each its own for as
// long as it is asked.
func keepsSessions(ctx context.Context, cfg *pgx.ConnConfig) error {
	one, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	defer func() { _ = one.Close(context.WithoutCancel(ctx)) }()
	first, err := session(ctx, one)
	if err != nil || first == one.PgConn().PID() {
		return err
	}
	other, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }()
	for range pooledTries {
		err = pgx.BeginFunc(ctx, other, func(t pgx.Tx) error {
			taken, failed := session(ctx, t)
			if failed == nil && taken == first {
				failed = ErrPooled
			}
			return failed
		})
		if err != nil {
			return err
		}
		switch now, err := session(ctx, one); {
		case err != nil:
			return err
		case now != first:
			return ErrPooled
		}
	}
	return nil
}

// session is the number of the server's session.
func session(ctx context.Context, q querier) (pid uint32, err error) {
	err = q.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
	return pid, wrapped("ask for the session", err)
}

// listeningDriver is River's driver, which listens over other connections than it works with.
type listeningDriver struct {
	*riverpgxv5.Driver
	server *riverpgxv5.Driver
}

// GetListener implements riverdriver.Driver.
func (l listeningDriver) GetListener(params *riverdriver.GetListenenerParams) riverdriver.Listener {
	return l.server.GetListener(params)
}

// KeepsSessions is ErrPooled if a URL leads to a pooler of transactions.
func KeepsSessions(ctx context.Context, rawURL string) error {
	cfg, err := parsePostgres(rawURL)
	if err != nil {
		return err
	}
	return keepsSessions(ctx, cfg.ConnConfig)
}
