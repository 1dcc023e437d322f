package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"millrace/test/bench/proc"
)

// cost is what the database, and this process, have done so far.
type cost struct {
	Postgres     time.Duration // CPU time of the server with all its processes
	Nodes        time.Duration // CPU time of this process
	Transactions int64         // a statement by itself is one
	Read         int64         // rows
	Written      int64         // rows: inserted, updated, deleted
	WAL          int64         // bytes
	Size         int64         // bytes of the database
}

func (c cost) since(b cost) cost {
	return cost{
		c.Postgres - b.Postgres, c.Nodes - b.Nodes, c.Transactions - b.Transactions, c.Read - b.Read,
		c.Written - b.Written, c.WAL - b.WAL, c.Size - b.Size,
	}
}

// meter reads costs, over a connection of its own.
type meter struct {
	conn   *pgx.Conn
	server int // PID
}

func newMeter(ctx context.Context, url string) (*meter, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	m := &meter{conn: conn}
	var backend int
	if err = conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return nil, fmt.Errorf("ask for a process of PostgreSQL: %w", err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", backend))
	if err != nil {
		return nil, fmt.Errorf("find PostgreSQL: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if parent, ok := strings.CutPrefix(line, "PPid:"); ok {
			m.server, err = strconv.Atoi(strings.TrimSpace(parent))
		}
	}
	if err != nil || m.server == 0 {
		return nil, fmt.Errorf("find PostgreSQL: process %d has no parent: %w", backend, err)
	}
	return m, nil
}

func (m *meter) read(ctx context.Context) (c cost, err error) {
	postgres, err := proc.Read(m.server)
	if err != nil {
		return c, fmt.Errorf("read CPU time of PostgreSQL: %w", err)
	}
	own, err := proc.Named(os.Getpid(), "")
	if err != nil {
		return c, fmt.Errorf("read own CPU time: %w", err)
	}
	c.Postgres, c.Nodes = postgres.CPU, own.CPU
	err = m.conn.QueryRow(ctx, "SELECT xact_commit + xact_rollback, tup_fetched, "+
		"tup_inserted + tup_updated + tup_deleted, pg_current_wal_insert_lsn() - '0/0'::pg_lsn, "+
		"pg_database_size(datname) FROM pg_stat_database WHERE datname = current_database()").
		Scan(&c.Transactions, &c.Read, &c.Written, &c.WAL, &c.Size)
	if err != nil {
		return c, fmt.Errorf("read statistics of PostgreSQL: %w", err)
	}
	return c, nil
}

// quantiles are of what took time.
type quantiles struct {
	Count    int
	P50, P99 time.Duration
}

// timings are how long statements took since the last reset, by their kind.
type timings struct {
	mu    sync.Mutex
	took  map[string][]time.Duration
	delay time.Duration
}

func (t *timings) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took, t.delay = map[string][]time.Duration{}, 0
}

func (t *timings) note(kind string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.took != nil {
		t.took[kind] = append(t.took[kind], took)
	}
}

// since notes what began at a time, and gives its error.
func (t *timings) since(kind string, began time.Time, err error) error {
	t.note(kind, time.Since(began))
	return err
}

// behind notes that something of the load was done so long after it was due.
func (t *timings) behind(late time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delay = max(t.delay, late)
}

func (t *timings) late() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.delay
}

func (t *timings) all() map[string]quantiles {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]quantiles{}
	for kind, took := range t.took {
		slices.Sort(took)
		n := len(took)
		out[kind] = quantiles{n, took[n/2], took[n*99/100]}
	}
	return out
}
