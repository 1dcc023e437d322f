package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"modernc.org/sqlite" // the driver "sqlite" too

	"millrace/internal/control/audit"
	"millrace/internal/masterkey"
)

const (
	// WAL lets readers go on while one writes. NORMAL loses no committed transaction when the process dies, only when
	// the power does. A checkpoint waits for the disk (tens of milliseconds), so run does it beside the writer; the
	// writer's own comes only when the log has grown to 256 MiB, should nobody run. When a log begins again its file is
	// cut to longLog, 64 MiB.
	pragmas      = "&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=foreign_keys(1)"
	writePragmas = "_pragma=busy_timeout(5000)" + pragmas +
		"&_txlock=immediate&_pragma=wal_autocheckpoint(65536)&_pragma=journal_size_limit(67108864)"
	readPragmas = "_pragma=busy_timeout(10000)" + pragmas + "&_pragma=query_only(1)"
	sidePragmas = "_pragma=busy_timeout(0)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"
	readers     = 4

	openingEvery = 10 * time.Millisecond

	// lockWait is how long what somebody has asked for waits for others that write, of this process or, by
	// busy_timeout, of another one; lockAgain is when asking again can help.
	lockWait  = 5 * time.Second
	lockAgain = 5 * time.Second
)

var errTurn = errors.New("other changes of this process are written one after the other, which takes too long")

type sqliteEngine struct {
	db          *bun.DB
	path        string
	write, read *sql.DB
	side        *sql.DB // for checkpoints
	log         *sqliteLog
	prepared    prepared // of write
	jobs        *river.Client[*sql.Tx]
	newJobs     *newJobs
	events      *news
	lock        *os.File      // of occupy; nil: not held
	turn        chan struct{} // held by who writes: one at a time, and those who wait have the next one in order
	waiting     waitingList   // changes that wait to be written
}

func openSQLite(ctx context.Context, path string, o Options) (_ *DB, err error) {
	if path, err = makeFile(path); err != nil {
		return nil, err
	}
	release, err := openAlone(ctx, path)
	if err != nil {
		return nil, err
	}
	defer release()
	name := "file:" + (&url.URL{Path: path}).EscapedPath() + "?"
	write, err := sql.Open("sqlite", name+writePragmas)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	e := &sqliteEngine{path: path, write: write, turn: make(chan struct{}, 1), newJobs: makeNewJobs(), events: &news{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	write.SetMaxOpenConns(1)
	driver := riversqlite.New(write)
	vault, master, err := migrateSQLite(ctx, driver, write, o)
	if err != nil {
		return nil, err
	}
	connector, err := sqlite.NewConnector(name + readPragmas)
	if err != nil {
		return nil, fmt.Errorf("open database for reading: %w", err)
	}
	held := newReading()
	e.read = sql.OpenDB(readConnector{connector, held})
	e.read.SetMaxOpenConns(readers)
	e.read.SetMaxIdleConns(readers)
	if e.side, err = sql.Open("sqlite", name+sidePragmas); err != nil {
		return nil, fmt.Errorf("open database for checkpoints: %w", err)
	}
	e.side.SetMaxOpenConns(1)
	e.log = &sqliteLog{
		file: path + "-wal", side: e.side, write: write, turn: e.turn, reading: held,
		hold: holdMost, long: longLog, large: largeLog, logger: o.Logger,
	}
	if e.jobs, err = river.NewClient(driver, &river.Config{Logger: riverLog(o.Logger)}); err != nil {
		return nil, fmt.Errorf("make job client: %w", err)
	}
	// What several changes have in common is taken back from a journal of its own, which is small, and else a file.
	if _, err = write.ExecContext(ctx, "PRAGMA temp_store = MEMORY"); err != nil {
		return nil, fmt.Errorf("keep journal of changes in memory: %w", err)
	}
	e.db = bun.NewDB(write, sqlitedialect.New())
	if e.prepared, err = prepare(ctx, e.db); err != nil {
		return nil, err
	}
	return &DB{
		write: e.db, own: e.db, read: bun.NewDB(e.read, sqlitedialect.New()), engine: audited{e}, news: e.events,
		rights: &rights{}, vault: vault, master: master, logger: o.Logger,
	}, nil
}

// makeFile makes the file readable for its owner only: it holds stream keys. found is its path without symbolic links,
// as SQLite names what it keeps beside it: our locks lie there too, so that they are one, however it is opened.
func makeFile(path string) (found string, err error) {
	if err = os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("make folder of database: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator's own choice of path
	if err != nil {
		return "", fmt.Errorf("open database file: %w", err)
	}
	if err = f.Close(); err != nil {
		return "", fmt.Errorf("make database file: %w", err)
	}
	if found, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("find database file: %w", err)
	}
	return found, nil
}

// openAlone waits until no other process opens a database in this folder: a change to WAL does not wait for one that is
// under way, and neither of the two migrations holds a lock over more than one of its steps. The lock is on the folder,
// which SQLite's own never are.
func openAlone(ctx context.Context, path string) (release func(), err error) {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("open folder of database: %w", err)
	}
	retry := time.NewTicker(openingEvery)
	defer retry.Stop()
	for {
		if err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock folder of database: %w", err), folder.Close())
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for another process to open the database: %w", context.Cause(ctx)),
				folder.Close())
		}
	}
	// a child that is just being started has the folder open too, for a moment: the lock would stay with it
	return func() {
		_ = syscall.Flock(int(folder.Fd()), syscall.LOCK_UN)
		_ = folder.Close()
	}, nil
}

func migrateSQLite(
	ctx context.Context, driver *riversqlite.Driver, write *sql.DB, o Options,
) (*masterkey.Vault, string, error) {
	newer, err := o.prepare(ctx, write)
	if err != nil {
		return nil, "", err
	}
	if newer {
		return unlock(ctx, write, o.MasterKey)
	}
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: riverLog(o.Logger)})
	if err != nil {
		return nil, "", fmt.Errorf("prepare migration of jobs: %w", err)
	}
	if _, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, "", fmt.Errorf("migrate jobs: %w", err)
	}
	// What a migration deletes or encrypts does not stay in free pages.
	if _, err = write.ExecContext(ctx, "PRAGMA secure_delete = ON"); err != nil {
		return nil, "", fmt.Errorf("prepare migration: %w", err)
	}
	vault, master, err := o.migrate(ctx, goose.DialectSQLite3, write)
	if err != nil {
		return nil, "", err
	}
	if _, err = write.ExecContext(ctx, "PRAGMA secure_delete = OFF"); err != nil {
		return nil, "", fmt.Errorf("end migration: %w", err)
	}
	return vault, master, nil
}

func (s *sqliteEngine) begin(ctx context.Context, fn func(context.Context, tx) error) error {
	var late <-chan time.Time // what the service does by itself waits without end
	if audit.Of(ctx).Wanted() {
		wait := time.NewTimer(lockWait)
		defer wait.Stop()
		late = wait.C
	}
	w := newWaiting(ctx, fn)
	s.waiting.join(w)
	select {
	case s.turn <- struct{}{}:
		s.lead(w)
	case <-w.done:
	case <-late:
		if s.waiting.leave(w) {
			return locked(errTurn)
		}
	case <-ctx.Done():
		if s.waiting.leave(w) {
			return fmt.Errorf("wait to write: %w", context.Cause(ctx))
		}
	}
	<-w.done // it is being written
	return w.outcome()
}

// inCommitOrder numbers events in the transaction itself: there is one at a time, so theirs is the order of the
// commits.
type inCommitOrder struct{ some bool }

func (i *inCommitOrder) begin(ctx context.Context, t tx, n int) (int64, error) {
	i.some = true
	last, err := t.number(ctx, advanceCursor, n)
	if err != nil {
		return 0, fmt.Errorf("advance cursor of events: %w", err)
	}
	return last - int64(n) + 1, nil
}

// tellRights has nobody to tell: see DB.HearRights.
func (s *sqliteEngine) tellRights(context.Context, tx, string, string) error { return nil }

func (s *sqliteEngine) alone() bool { return true }

// numberEvents has nothing to do.
func (s *sqliteEngine) numberEvents(context.Context) error { return nil }

func (s *sqliteEngine) client(cfg *river.Config) (JobClient, error) {
	own := *cfg
	// River rebuilds indexes at midnight, which PostgreSQL needs and SQLite does not. Those it looks for are
	// PostgreSQL's.
	own.ReindexerIndexNames = []string{}
	return river.NewClient(quietDriver{riversqlite.New(s.write), s.newJobs, s.read}, &own)
}

func (s *sqliteEngine) now() string {
	return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
}
func (s *sqliteEngine) lastAttempt() string { return "attempted_by ->> '$[#-1]'" }
func (s *sqliteEngine) cancelled() string   { return "metadata ->> 'cancel_attempted_at' IS NOT NULL" }
func (s *sqliteEngine) jobKey() string      { return "args ->> 'key'" }

func (s *sqliteEngine) count(name string) string { return "COALESCE(metadata ->> '" + name + "', 0)" }

func (s *sqliteEngine) countUp(name string) string {
	return "jsonb_set(metadata, '$." + name + "', " + s.count(name) + " + 1)"
}

func (s *sqliteEngine) later() string {
	return "strftime('%Y-%m-%d %H:%M:%f', 'now', (? / 1000.0) || ' seconds')"
}

func (s *sqliteEngine) close() error {
	errs := []error{s.prepared.close()}
	for _, pool := range []*sql.DB{s.read, s.side} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	errs = append(errs, s.write.Close(), s.unlock()) // the last one out folds the WAL back into the file
	return errors.Join(errs...)
}

// run keeps the log short.
func (s *sqliteEngine) run(ctx context.Context) error { return s.log.run(ctx) }

func (s *sqliteEngine) logBytes() func() int64 { return s.log.bytes }
