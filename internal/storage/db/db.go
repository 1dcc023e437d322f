// Package db stores the control plane's rows, events and jobs, on SQLite or PostgreSQL with the same code. One call of
// a store is one transaction: row, playback IDs, tracks, timeline entries, events and jobs together or not at all. It
// must never know media, HTTP or what a job does. It starts no goroutine of its own; the pools of database/sql and pgx
// do, and end with Close. Only this package contains SQL.
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/uptrace/bun"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/control/upload"
	"millrace/internal/id"
	"millrace/internal/masterkey"
)

// Options is what Open needs.
type Options struct {
	// URL is a path of an SQLite file, sqlite:///absolute/path, sqlite:relative/path, or postgres://….
	URL    string
	Logger *slog.Logger
	// Direct is the URL of the PostgreSQL server itself, where URL leads to a pooler that gives each transaction
	// another session; empty: URL leads to the server, or to something that keeps sessions.
	Direct string
	// MasterKey gives the key that secrets are encrypted under. It is called once, with the fingerprint of the key that
	// the database knows; empty: it knows none yet, and the key that is given becomes its key.
	MasterKey func(known string) (masterkey.Key, error)
	// BeforeMigration is called before the schema of a database that has been used is migrated, while no other process
	// can do so; after an error it is not. nil: nobody is.
	BeforeMigration func(ctx context.Context, from, to int64) error

	migrations fs.FS // in the folder migrations; nil: those of this program
}

// DB is an open database, whose schema is this program's or a later one that admits it. Close it last.
type DB struct {
	write  *bun.DB // SQLite: one connection, since it has one writer
	read   *bun.DB // SQLite: a pool that can't write; PostgreSQL: the same as write
	own    *bun.DB // of this node's row: on PostgreSQL one connection beside the pool, on SQLite the same as write
	engine engine
	news   *news // of events
	rights *rights
	vault  *masterkey.Vault
	master string // fingerprint of the master key
	logger *slog.Logger
}

// engine is what differs between the two.
type engine interface {
	// begin runs fn in one transaction, in which jobs can be inserted; an error rolls back.
	begin(ctx context.Context, fn func(ctx context.Context, tx tx) error) error
	// client makes a working River client on the same handles.
	client(cfg *river.Config) (JobClient, error)
	// now is the SQL expression for the database's clock in Unix milliseconds, lastAttempt for who took a job last,
	// cancelled for whether a running job is to be cancelled, jobKey for our key of a job.
	now() string
	lastAttempt() string
	cancelled() string
	jobKey() string
	// count is the SQL expression for a number in a job's metadata, countUp for the metadata with one more, later for
	// River's time a given number of milliseconds from now.
	count(name string) string
	countUp(name string) string
	later() string
	// occupy and keepNode are DB's Occupy and KeepNode.
	occupy(ctx context.Context, node id.Node) error
	keepNode(ctx context.Context) error
	// numberEvents numbers the events that are committed and have no sequence yet; those that others have committed
	// too.
	numberEvents(ctx context.Context) error
	// tellRights tells every process, when the transaction is committed, that something which caches hold of viewers'
	// rights is changed.
	tellRights(ctx context.Context, t tx, noun, key string) error
	// alone says that no other process can run on the database.
	alone() bool
	// logBytes tells the size of the log that run keeps short; nil: it keeps none.
	logBytes() func() int64
	run(ctx context.Context) error
	close() error
}

// numberer gives the events of a transaction their place among all events.
type numberer interface {
	// begin is called before n events are inserted; it gives the first one's sequence, or 0 when they are numbered
	// after the commit.
	begin(ctx context.Context, t tx, n int) (first int64, err error)
}

// Open opens the database and migrates its schema. Several processes may do so at the same time. A PostgreSQL server
// that is away is fault.Unavailable; one that refuses is not.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if isPostgres(o.URL) {
		return openPostgres(ctx, o)
	}
	path, err := sqlitePath(o.URL)
	if err != nil {
		return nil, err
	}
	return openSQLite(ctx, path, o)
}

func isPostgres(raw string) bool {
	return strings.HasPrefix(raw, "postgres://") || strings.HasPrefix(raw, "postgresql://")
}

func sqlitePath(raw string) (string, error) {
	path := raw
	if rest, ok := strings.CutPrefix(raw, "sqlite:"); ok {
		path = strings.TrimPrefix(rest, "//")
	} else if scheme, _, ok := strings.Cut(raw, "://"); ok {
		return "",
			fmt.Errorf("open database: %q is not a known kind of database URL; use sqlite:///path or "+
				"postgres://host/name", scheme)
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return "", errors.New("open database: the URL names no file")
	}
	return path, nil
}

// LiveStreams is the store of live streams.
func (d *DB) LiveStreams() live.Store { return liveStore{d} }

// Assets is the store of assets.
func (d *DB) Assets() asset.Store { return assetStore{d} }

// Uploads is the store of direct uploads.
func (d *DB) Uploads() upload.Store { return uploadStore{d} }

// Access is the store of environments and tokens.
func (d *DB) Access() access.Store { return accessStore{d} }

// Ping reports whether the database responds, by reading from it.
func (d *DB) Ping(ctx context.Context) error {
	var one int
	if err := d.read.NewSelect().ColumnExpr("1").Scan(ctx, &one); err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return nil
}

// Name is for lifecycle.
func (d *DB) Name() string { return "database" }

// Run keeps house until ctx ends: on SQLite it keeps the log short and checkpoints out of the writers' way, on
// PostgreSQL it numbers events as they are committed, says that there are some, here and to all other processes, as of
// jobs, and tells HearRights. Everything else works without it, with pauses of a second. It stops before Close and
// after everything that writes.
func (d *DB) Run(ctx context.Context) error { return d.engine.run(ctx) }

// LogBytes gives what tells the size in bytes of the log beside SQLite's file; nil on PostgreSQL, which keeps its own.
func (d *DB) LogBytes() func() int64 { return d.engine.logBytes() }

// Close lets go of every connection; nothing may use the DB at the same time.
func (d *DB) Close() error {
	if err := d.engine.close(); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

// tx is one transaction: rows and jobs.
type tx struct {
	bun.IDB
	scan     func(ctx context.Context, rows *sql.Rows, into ...any) error // reads them all
	prepared prepared                                                     // on SQLite
	bind     func(ctx context.Context, s *sql.Stmt) *sql.Stmt             // one of them to the transaction
	events   numberer
	changes  *changes // nil: nobody asks what is changed
	jobs     interface {
		insert(ctx context.Context, args river.JobArgs, opts *river.InsertOpts) error
		cancel(ctx context.Context, job int64) error
	}
}

// jobsIn binds River to a transaction of either engine.
type jobsIn[T any] struct {
	client   *river.Client[T]
	tx       T
	inserted func(queue string) // told of each job that can be worked on at once; nil: nobody wants to know
}

func (j jobsIn[T]) insert(ctx context.Context, args river.JobArgs, opts *river.InsertOpts) error {
	got, err := j.client.InsertTx(ctx, j.tx, args, opts)
	if err == nil && j.inserted != nil && !got.UniqueSkippedAsDuplicate &&
		got.Job.State == rivertype.JobStateAvailable {
		j.inserted(got.Job.Queue)
	}
	return err
}

func (j jobsIn[T]) cancel(ctx context.Context, job int64) error {
	_, err := j.client.JobCancelTx(ctx, j.tx, job)
	return err
}

// JobClient is a working River client on either engine.
type JobClient interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	StopAndCancel(ctx context.Context) error
}

var (
	_ JobClient = (*river.Client[pgx.Tx])(nil)
	_ JobClient = (*river.Client[*sql.Tx])(nil)
)

// JobClient makes a River client that works jobs; package queue is its only caller. River's news are details to cfg's
// logger.
func (d *DB) JobClient(cfg *river.Config) (JobClient, error) {
	own := *cfg
	if own.Logger != nil {
		own.Logger = riverLog(own.Logger)
	}
	c, err := d.engine.client(&own)
	if err != nil {
		return nil, fmt.Errorf("make job client: %w", err)
	}
	return c, nil
}
