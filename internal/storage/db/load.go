package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/pressly/goose/v3"

	"millrace/internal/control/audit"
	"millrace/internal/control/job"
	"millrace/internal/control/retention"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/rows"
)

// RowReader gives the rows of tables, one after the other, as rows.Reader does.
type RowReader interface {
	Next() (rows.Table, error)
	Row() ([]any, error)
}

// Load is a database that rows of a backup are put into. No service may run on it. It needs no master key: secrets stay
// encrypted.
type Load struct {
	in           loading
	schema, have int64 // of the rows; of the tables
}

// loading is what differs between the engines.
type loading interface {
	pool() *sql.DB
	dialect() goose.Dialect
	// within runs fn in one transaction.
	within(ctx context.Context, fn func(q queries, enqueue func(job.Insert) error) error) error
	// inUse says that a service runs.
	inUse(ctx context.Context) error
	// makeJobs makes the tables of jobs.
	makeJobs(ctx context.Context) error
	close() error
}

// OpenLoad opens the database at a URL as Open takes it, and makes the tables of a version of the schema where there
// are none. A database that a service runs on is ErrOccupied. One with a newer schema can be looked at; see Fits.
func OpenLoad(ctx context.Context, rawURL string, schema int64, logger *slog.Logger) (_ *Load, err error) {
	if err = Loadable(schema); err != nil {
		return nil, err
	}
	l := &Load{schema: schema}
	if isPostgres(rawURL) {
		l.in, err = openLoadPostgres(ctx, rawURL, logger)
	} else {
		l.in, err = openLoadSQLite(ctx, rawURL, logger)
	}
	if err != nil {
		return nil, err
	}
	if err = l.makeTables(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Loadable says why rows of a version of the schema can't be loaded.
func Loadable(schema int64) error {
	newest, err := SchemaVersion()
	switch {
	case err != nil:
		return err
	case schema > newest:
		return fault.New(fault.Conflict, "the backup has version %d of the database's schema, and this program knows "+
			"%d: "+
			"restore it with the version of Millrace that made it, or a later one", schema, newest)
	case schema < masterKeyFrom:
		return fault.New(fault.Invalid, "no version of Millrace has made a backup of version %d of the schema", schema)
	}
	return nil
}

// migrations of an empty database, or of one whose secrets are encrypted already, need no key.
func (l *Load) migrations() (*goose.Provider, error) {
	vault := masterkey.NewVault()
	return provider(l.in.dialect(), l.in.pool(), &vault, migrations)
}

func (l *Load) makeTables(ctx context.Context) error {
	if err := l.in.makeJobs(ctx); err != nil {
		return err
	}
	p, err := l.migrations()
	if err != nil {
		return err
	}
	if _, err = p.UpTo(ctx, l.schema); err != nil {
		return fmt.Errorf("make tables: %w", err)
	}
	l.have, err = newestVersion(ctx, l.in.pool())
	return err
}

// Fits says why rows can't be put into the database.
func (l *Load) Fits() error {
	if l.have > l.schema {
		return fault.New(fault.Conflict, "the database has version %d of the schema already, and the rows have "+
			"%d: name a database that does not exist yet, or is empty", l.have, l.schema)
	}
	return nil
}

// Content is what a database has before rows are loaded.
type Content struct {
	// Empty says that nobody has used it.
	Empty bool
	// Identity is of the database, as loaded rows have it; none: it has none.
	Identity string
}

// Content looks at the database, and says when a service runs on it.
func (l *Load) Content(ctx context.Context) (c Content, err error) {
	if err = l.in.inUse(ctx); err != nil {
		return c, err
	}
	c.Empty = true
	tables, err := l.existing(ctx, l.in.pool(), backedUp())
	if err != nil {
		return c, err
	}
	for _, t := range tables {
		if slices.Contains(madeBySchema(), t) {
			continue
		}
		var some bool
		if err = l.in.pool().QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+t+")").Scan(&some); err != nil {
			return c, fmt.Errorf("look at table %s: %w", t, err)
		}
		if some {
			c.Empty = false
			break
		}
	}
	var key []byte
	err = l.in.pool().QueryRowContext(ctx, "SELECT data_key FROM master_key WHERE one = 1").Scan(&key)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return c, fmt.Errorf("look at the master key: %w", err)
	}
	c.Identity = IdentityOf(key)
	return c, nil
}

// existing are those of the tables that the version of the schema has.
func (l *Load) existing(ctx context.Context, q queries, tables []string) (have []string, err error) {
	for _, name := range tables {
		t, err := columnsOf(ctx, q, l.postgres(), name)
		if err != nil {
			return nil, err
		}
		if len(t.Columns) > 0 {
			have = append(have, name)
		}
	}
	return have, nil
}

// IdentityOf tells databases apart by the data key as it lies in their rows; a copy has that of the original.
func IdentityOf(dataKey []byte) string {
	if len(dataKey) == 0 {
		return ""
	}
	return fmt.Sprintf("%x", dataKey)
}

// Rows puts all rows into the place of what is there, in one transaction: all of them, or none. When the context has
// an entry for the audit log, that is added in the same transaction. check may look at the rows as they are in the
// database then, by what it is given, and refuse them; nil: nobody looks.
func (l *Load) Rows(ctx context.Context, from RowReader, check func(read func(to RowWriter) error) error) error {
	if err := l.Fits(); err != nil {
		return err
	}
	return l.in.within(ctx, func(q queries, enqueue func(job.Insert) error) error {
		all, err := l.existing(ctx, q, append(backedUp(), leftOut()...))
		if err != nil {
			return err
		}
		slices.Reverse(all)
		for _, t := range append(all, "river_job") {
			if _, err := q.ExecContext(ctx, "DELETE FROM "+t); err != nil {
				return fmt.Errorf("empty table %s: %w", t, err)
			}
		}
		if err := l.tables(ctx, q, from, enqueue); err != nil {
			return err
		}
		if check != nil {
			err := check(func(to RowWriter) error { return dumpRows(ctx, q, l.postgres(), to) })
			if err != nil {
				return err
			}
		}
		return errors.Join(numberAll(ctx, q), l.beginGrace(ctx, q), l.audit(ctx, q))
	})
}

// beginGrace has retention wait: what was restored because it had been deleted would be deleted again at once.
func (l *Load) beginGrace(ctx context.Context, q queries) error {
	t, err := columnsOf(ctx, q, l.postgres(), "retention_policies")
	if err != nil || len(t.Columns) == 0 { // an older schema has none
		return err
	}
	_, err = q.ExecContext(ctx, "UPDATE retention_policies SET starts_at = $1 WHERE starts_at < $1",
		millis(time.Now().Add(retention.DefaultGrace)))
	if err != nil {
		return fmt.Errorf("begin the grace period of retention: %w", err)
	}
	return nil
}

// audit adds the entry of the context.
func (l *Load) audit(ctx context.Context, q queries) error {
	pending := audit.Of(ctx)
	t, err := columnsOf(ctx, q, l.postgres(), "audit_log")
	if err != nil || !pending.Wanted() || len(t.Columns) == 0 { // an older schema has none
		return err
	}
	e := pending.Entry
	_, err = q.ExecContext(ctx, "INSERT INTO audit_log (id, at, environment_id, actor_type, actor_id, actor_name, "+
		"operation, resource_type, resource_id, address, request_id) "+
		"VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
		id.NewOrderedUUID(e.At), millis(e.At), string(e.Environment), e.Actor.Type, e.Actor.ID, e.Actor.Name,
		e.Operation, e.Resource.Type, e.Resource.ID, e.Address, e.RequestID)
	if err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

func (l *Load) tables(ctx context.Context, q queries, from RowReader, enqueue func(job.Insert) error) error {
	missing := append(backedUp(), jobsTable().Name)
	for {
		t, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		i := slices.Index(missing, t.Name)
		if i < 0 {
			return fault.New(fault.Invalid, "the backup has a table %q, which is none of ours or comes twice", t.Name)
		}
		missing = slices.Delete(missing, i, i+1)
		if t.Name == jobsTable().Name {
			err = loadJobs(t, from, enqueue)
		} else {
			err = l.table(ctx, q, t, from)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range missing {
		if t, err := columnsOf(ctx, q, l.postgres(), name); err != nil || len(t.Columns) > 0 ||
			name == jobsTable().Name {
			return errors.Join(fault.New(fault.Invalid, "the backup has no table %s", name), err)
		}
	}
	return nil
}

func (l *Load) postgres() bool { return l.in.dialect() == goose.DialectPostgres }

const (
	// loadRows is how many rows are inserted by one statement, and loadBytes how many bytes they have: so many that the
	// way to the server does not count.
	loadRows, loadBytes = 100, 1 << 20
	// loadValues is how many values SQLite takes for one statement.
	loadValues = 30_000
)

func (l *Load) table(ctx context.Context, q queries, t rows.Table, from RowReader) error {
	own, err := columnsOf(ctx, q, l.postgres(), t.Name)
	if err != nil {
		return err
	}
	if !sameColumns(own, t) {
		return fault.New(fault.Invalid, "the backup's table %s has not the columns of version %d of the schema", t.Name,
			l.schema)
	}
	most := min(loadRows, loadValues/len(t.Columns))
	values, size := make([]any, 0, most*len(t.Columns)), 0
	insert := func() error {
		if len(values) == 0 {
			return nil
		}
		text := "INSERT INTO " + t.Name + " (" + names(t) + ") VALUES " + marks(len(values)/len(t.Columns),
			len(t.Columns))
		if _, err := q.ExecContext(ctx, text, values...); err != nil {
			return full(fmt.Errorf("insert into %s: %w", t.Name, err))
		}
		values, size = values[:0], 0
		return nil
	}
	for {
		row, err := from.Row()
		if errors.Is(err, io.EOF) {
			return insert()
		}
		if err != nil {
			return err
		}
		for _, v := range row {
			size += sizeOf(v)
		}
		values = append(values, row...)
		if len(values) == most*len(t.Columns) || size >= loadBytes {
			if err = insert(); err != nil {
				return err
			}
		}
	}
}

func sizeOf(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []byte:
		return len(v)
	}
	return 8
}

// sameColumns reports whether two tables have the same columns, in any order.
func sameColumns(a, b rows.Table) bool {
	if len(a.Columns) != len(b.Columns) {
		return false
	}
	for _, c := range a.Columns {
		if i := b.Index(c.Name); i < 0 || b.Columns[i].Kind != c.Kind {
			return false
		}
	}
	return true
}

// marks are the places of the values of n rows.
func marks(n, columns int) string {
	var b strings.Builder
	for i := range n * columns {
		switch {
		case i == 0:
			b.WriteByte('(')
		case i%columns == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", i+1)
	}
	b.WriteByte(')')
	return b.String()
}

func loadJobs(t rows.Table, from RowReader, enqueue func(job.Insert) error) error {
	if !sameColumns(t, jobsTable()) {
		return fault.New(fault.Invalid, "the backup's jobs have not the columns of jobs")
	}
	for {
		row, err := from.Row()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		text := func(column string) string { s, _ := row[t.Index(column)].(string); return s }
		var args JobArgs
		if err = read(text("args"), &args); err != nil {
			return fault.New(fault.Invalid, "the backup has a job whose arguments can't be read")
		}
		at, _ := row[t.Index("at")].(int64)
		if err = enqueue(job.Insert{
			Kind: text("kind"), Key: args.Key, Owner: args.Owner, Args: args.Body, At: time.UnixMilli(at),
			Queue: job.Queue(text("queue")),
		}); err != nil {
			return err
		}
	}
}

// numberAll numbers the events that had no number yet: on PostgreSQL they get it after their commit.
func numberAll(ctx context.Context, q queries) error {
	_, err := q.ExecContext(ctx, "UPDATE events SET sequence = n.sequence FROM (SELECT id, "+
		"(SELECT last FROM event_cursor WHERE one = 1) + ROW_NUMBER() OVER (ORDER BY at, position, id) AS sequence "+
		"FROM events WHERE sequence = 0) AS n WHERE n.id = events.id")
	if err == nil {
		_, err = q.ExecContext(ctx, "UPDATE event_cursor SET last = (SELECT MAX(sequence) FROM events) "+
			"WHERE last < (SELECT MAX(sequence) FROM events)")
	}
	if err != nil {
		return fmt.Errorf("number events: %w", err)
	}
	return nil
}

// Migrate brings the schema up to date.
func (l *Load) Migrate(ctx context.Context) error {
	p, err := l.migrations()
	if err != nil {
		return err
	}
	if _, err = p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// Close lets go of the database.
func (l *Load) Close() error {
	if err := l.in.close(); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}
