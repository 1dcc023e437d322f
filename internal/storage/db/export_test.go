package db

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"testing/fstest"

	"github.com/pressly/goose/v3"
	"github.com/uptrace/bun"

	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/control/job"
)

// Tell stores events in a transaction of its own, which is committed when hold returns.
func (d *DB) Tell(ctx context.Context, hold func(), events ...event.Event) error {
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		if err := t.tell(ctx, events, nil); err != nil {
			return err
		}
		hold()
		return nil
	})
}

// InTransaction calls fn in a transaction, whose statements are executed by exec.
func (d *DB) InTransaction(ctx context.Context, fn func(exec func(context.Context, string) error) error) error {
	return d.engine.begin(ctx, func(_ context.Context, t tx) error {
		return fn(func(ctx context.Context, query string) error {
			_, err := t.ExecContext(ctx, query)
			return err
		})
	})
}

// FillEvents stores many events of an SQLite database at once: a second apart, of 10 types and a rare one, about 10,000
// objects.
func (d *DB) FillEvents(ctx context.Context, n int) error {
	_, err := d.write.ExecContext(ctx, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO events (id, environment_id, type, object_kind, object_id, resource_id, at, position, number, sequence, request_id, data)
		SELECT lower(hex(randomblob(16))), 'env', CASE WHEN i % 10007 = 0 THEN 'test.rare' ELSE 'test.type' || (i % 10) END, 'thing', 'object' || (i % 10007),
			'object' || (i % 10007), i * 1000, 0, i / 10007 + 1, i, '', '{"id":"x","passthrough":"' || hex(randomblob(300)) || '"}' FROM n`, n)
	if err == nil {
		_, err = d.write.ExecContext(ctx, "UPDATE event_cursor SET last = ?", n)
	}
	return err
}

// OnPostgres reports on which engine it is.
func (d *DB) OnPostgres() bool {
	_, is := d.engine.(audited).engine.(*postgresEngine)
	return is
}

// MigrateTo brings the schema to a version, down or up.
func (d *DB) MigrateTo(ctx context.Context, version int64) error {
	dialect := goose.DialectSQLite3
	if d.OnPostgres() {
		dialect = goose.DialectPostgres
	}
	p, err := provider(dialect, d.write.DB, &d.vault, migrations)
	if err == nil {
		_, err = p.DownTo(ctx, version)
	}
	if err == nil {
		_, err = p.UpTo(ctx, version)
	}
	return err
}

// OpenLater opens a database as a later program does, which has more migrations, by the names of their files.
func OpenLater(ctx context.Context, o Options, more map[string]string) (*DB, error) {
	files := fstest.MapFS{}
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			return nil, err
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	for name, text := range more {
		files["migrations/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	o.migrations = files
	return Open(ctx, o)
}

// DumpLeftOut gives the rows of the tables that no backup has.
func DumpLeftOut(ctx context.Context, rawURL string, to RowWriter) error {
	pool, err := openToDump(rawURL)
	if err != nil {
		return err
	}
	for _, name := range leftOut() {
		t, failed := columnsOf(ctx, pool, isPostgres(rawURL), name)
		if failed == nil && len(t.Columns) > 0 {
			failed = dumpTable(ctx, pool, t, "SELECT "+names(t)+" FROM "+name, to)
		}
		err = errors.Join(err, failed)
	}
	return errors.Join(err, pool.Close())
}

// LeftOut puts rows of the tables that no backup has into the database.
func (l *Load) LeftOut(ctx context.Context, from RowReader) error {
	return l.in.within(ctx, func(q queries, _ func(job.Insert) error) error {
		for {
			t, err := from.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				err = l.table(ctx, q, t, from)
			}
			if err != nil {
				return err
			}
		}
	})
}

// Tables are all of ours.
func Tables() []string { return append(backedUp(), LeftOut()...) }

// Exec runs a statement.
func (d *DB) Exec(ctx context.Context, statement string) error {
	_, err := d.write.DB.ExecContext(ctx, statement)
	return err
}

// Texts are all values of a column as texts.
func (d *DB) Texts(ctx context.Context, column, table string) (all []string, err error) {
	rows, err := d.write.DB.QueryContext(ctx, "SELECT "+column+" FROM "+table)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text []byte
		if err = rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, string(text))
	}
	return all, rows.Err()
}

// plans notes how SQLite would do each statement that is read.
type plans struct {
	db    *bun.DB
	lines []string
}

func (p *plans) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (p *plans) AfterQuery(ctx context.Context, e *bun.QueryEvent) {
	var id, parent, notUsed int
	var detail string
	rows, err := p.db.DB.QueryContext(ctx, "EXPLAIN QUERY PLAN "+e.Query)
	if err == nil {
		defer func() { _ = rows.Close() }()
		for rows.Next() && err == nil {
			err = rows.Scan(&id, &parent, &notUsed, &detail)
			p.lines = append(p.lines, detail)
		}
		err = errors.Join(err, rows.Err())
	}
	if err != nil {
		p.lines = append(p.lines, err.Error())
	}
}

// Plans are the steps of SQLite's query plans for what read reads.
func (d *DB) Plans(read func(*DB) error) ([]string, error) {
	p := &plans{db: d.read}
	watched := *d
	watched.read = d.read.WithQueryHook(p)
	err := read(&watched)
	return p.lines, err
}

// TakeConnections takes so many connections of the pool, until the function is called that it returns.
func (d *DB) TakeConnections(ctx context.Context, n int) (release func() error, err error) {
	var taken []bun.Conn
	release = func() error {
		var errs []error
		for _, c := range taken {
			errs = append(errs, c.Close())
		}
		taken = nil
		return errors.Join(errs...)
	}
	for range n {
		c, err := d.write.Conn(ctx)
		if err != nil {
			return nil, errors.Join(err, release())
		}
		taken = append(taken, c)
	}
	return release, nil
}

// HoldTurn has those who write on SQLite wait until free is called.
func (d *DB) HoldTurn() (free func()) {
	e := d.sqlite()
	e.turn <- struct{}{}
	return func() { <-e.turn }
}

// AwaitWaiting waits until n changes wait to be written. It gives what counts those of them that were told how that
// went.
func (d *DB) AwaitWaiting(n int) (told func() int) {
	e := d.sqlite()
	var all []*waiting
	for ; len(all) != n; runtime.Gosched() {
		e.waiting.mu.Lock()
		all = slices.Clone(e.waiting.all)
		e.waiting.mu.Unlock()
	}
	return func() (done int) {
		for _, w := range all {
			if w.isDone() {
				done++
			}
		}
		return done
	}
}

func (d *DB) sqlite() *sqliteEngine {
	return d.engine.(audited).engine.(*sqliteEngine) //nolint:forcetypeassert // else the test is wrong
}

// Led gives what is set for a transaction in which a writer writes.
func (d *DB) Led(ctx context.Context, by asset.Writer, key, setting string) (value string, err error) {
	err = d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		if failed := led(ctx, t, by, key); failed != nil {
			return failed
		}
		return t.NewRaw("SELECT current_setting(?)", setting).Scan(ctx, &value)
	})
	return value, err
}

// LeftOut are the tables that no backup has.
func LeftOut() []string { return append(leftOut(), compatibilityTable) }

// Execute runs a statement on a connection of the pool.
func (d *DB) Execute(ctx context.Context, query string) error {
	_, err := d.write.ExecContext(ctx, query)
	return err
}
