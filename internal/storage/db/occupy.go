package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"millrace/internal/id"
)

// ErrOccupied says that another process runs on this database: on SQLite any, on PostgreSQL one with the same node's
// name.
var ErrOccupied = errors.New("another millrace runs on this database")

const occupyEvery = 200 * time.Millisecond

// Occupy lets no other process in that would disturb this one, until Close: on SQLite none at all, on PostgreSQL none
// with the same node's name, as it would take up the jobs and end the broadcasts of this one. One that is just going is
// waited for, for as long as patience; then the error is ErrOccupied. Tokens may be made and listed meanwhile.
func (d *DB) Occupy(ctx context.Context, node id.Node, patience time.Duration) error {
	began := time.Now()
	retry := time.NewTicker(occupyEvery)
	defer retry.Stop()
	for n := 0; ; n++ {
		err := d.engine.occupy(ctx, node)
		if !errors.Is(err, ErrOccupied) || time.Since(began) >= patience {
			return err
		}
		if n == 0 {
			d.logger.WarnContext(ctx, "waiting for another process to go", slog.Any("error", err))
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for another process to go: %w", context.Cause(ctx))
		}
	}
}

// KeepNode looks that what Occupy took is still this process's, and takes it again when the connection to PostgreSQL
// was lost. It is ErrOccupied when another process was faster.
func (d *DB) KeepNode(ctx context.Context) error { return d.engine.keepNode(ctx) }

// occupy locks a file beside the database: SQLite's own locks are on the database, and last no longer than a
// transaction.
func (s *sqliteEngine) occupy(context.Context, id.Node) error {
	if s.lock != nil {
		return nil
	}
	f, err := os.OpenFile(s.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open lock of database: %w", err)
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("%w, %s: stop it, or give this one its own --database-url", ErrOccupied, s.path)
		}
		return fmt.Errorf("lock database: %w", err)
	}
	s.lock = f
	return nil
}

// unlock lets go of what occupy took.
func (s *sqliteEngine) unlock() error {
	if s.lock == nil {
		return nil
	}
	// a child that is just being started has it open too, for a moment
	_ = syscall.Flock(int(s.lock.Fd()), syscall.LOCK_UN)
	return s.lock.Close() //nolint:wrapcheck // by DB.Close
}

// keepNode has nothing to do: the lock ends with the process.
func (s *sqliteEngine) keepNode(context.Context) error { return nil }

// nodeLock is a lock on a node's name, on a connection of its own: it lasts as long as that.
type nodeLock struct {
	mu   sync.Mutex
	node id.Node
	conn *pgx.Conn // nil: none
}

const (
	nodeLockClass = 0x6d696c6c // "mill"
	releaseTime   = 5 * time.Second
)

// nodeLocks has the lock on a node's name, if any process has it: class and name. PostgreSQL shows the two numbers of
// such a lock as unsigned ones.
const nodeLocks = "SELECT 1 FROM pg_locks AS k WHERE k.locktype = 'advisory' AND k.granted AND k.objsubid = 2 " +
	"AND k.database = (SELECT oid FROM pg_database WHERE datname = current_database()) " +
	"AND k.classid = CAST(? AS oid) AND k.objid = CAST(CAST(hashtext(?) AS bigint) & 4294967295 AS oid)"

// serverNotices has the server find out within seconds that this machine has gone without a word.
const serverNotices = "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; " +
	"SET idle_session_timeout = 0"

func (p *postgresEngine) occupy(ctx context.Context, node id.Node) error {
	p.node.mu.Lock()
	defer p.node.mu.Unlock()
	p.node.node = node
	return p.lockNode(ctx)
}

func (p *postgresEngine) keepNode(ctx context.Context) error {
	p.node.mu.Lock()
	defer p.node.mu.Unlock()
	if p.node.node == "" {
		return nil
	}
	if p.node.conn != nil {
		if p.node.conn.Ping(ctx) == nil {
			return nil
		}
		p.node.drop()
	}
	return p.lockNode(ctx)
}

// lockNode is called with the lock.
func (p *postgresEngine) lockNode(ctx context.Context) (err error) {
	conn, err := pgx.ConnectConfig(ctx, p.server.Config().ConnConfig)
	if err != nil {
		return away(ctx, fmt.Errorf("connect to database: %w", err))
	}
	defer func() {
		if err != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
	}()
	_, _ = conn.Exec(ctx, serverNotices) // an older server lacks some of it
	var taken bool
	if err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1::int, hashtext($2))", nodeLockClass,
		string(p.node.node)).Scan(&taken); err != nil {
		return away(ctx, fmt.Errorf("lock name of node: %w", err))
	}
	if !taken {
		return fmt.Errorf("%w under the node's name %s: stop it, or give this one its own --node-id (and data "+
			"folder: its file node-id must not be copied)",
			ErrOccupied, p.node.node)
	}
	p.node.conn = conn
	return nil
}

// drop is called with the lock.
func (n *nodeLock) drop() {
	if n.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime) //nolint:forbidigo // the last word of a connection
	defer cancel()
	// The lock ends with the connection too, but the server may notice later that this has gone.
	_, _ = n.conn.Exec(ctx, "SELECT pg_advisory_unlock_all()")
	_ = n.conn.Close(ctx)
	n.conn = nil
}

func (n *nodeLock) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop()
}
