package db

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"

	"millrace/internal/fault"
	"millrace/internal/storage/rows"
)

// RowWriter takes the rows of tables, one after the other.
type RowWriter interface {
	Table(t rows.Table) error
	Row(values []any) error
}

// Dump is a database as it is at one moment, while a service goes on with it. It needs no master key: secrets stay
// encrypted.
type Dump struct {
	pool     *sql.DB
	tx       *sql.Tx
	postgres bool

	// Schema is the version of the schema, and MasterKey the fingerprint of the master key.
	Schema    int64
	MasterKey string
	// Identity is of the database, as IdentityOf has it; none: no service has used it.
	Identity string
}

// OpenDump opens the database at a URL as Open takes it. One that is not there is fault.NotFound.
func OpenDump(ctx context.Context, rawURL string) (_ *Dump, err error) {
	d := &Dump{postgres: isPostgres(rawURL)}
	if d.pool, err = openToDump(rawURL); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	// Both see the database as it is when the first row is read. SQLite's connection can't write anyway.
	o := &sql.TxOptions{}
	if d.postgres {
		o.Isolation, o.ReadOnly = sql.LevelRepeatableRead, true
	}
	if d.tx, err = d.pool.BeginTx(ctx, o); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if d.Schema, err = newestVersion(ctx, d.tx); err != nil {
		if fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
			return nil, err
		}
		return nil, fault.Wrap(fault.NotFound, err, "the database has no tables: no service has used it yet")
	}
	newest, err := SchemaVersion()
	switch {
	case err != nil:
		return nil, err
	case d.Schema > newest:
		return nil, fault.New(fault.Conflict, "the database has version %d of the schema, and this program knows %d: "+
			"use the version of Millrace that the service runs on, or a later one", d.Schema, newest)
	case d.Schema < masterKeyFrom:
		return nil, fault.New(fault.Conflict, "the database is of a version before the master key: start the service "+
			"once, and then do this again")
	}
	var key []byte
	err = d.tx.QueryRowContext(ctx, "SELECT fingerprint, data_key FROM master_key WHERE one = 1").
		Scan(&d.MasterKey, &key)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read fingerprint of master key: %w", err)
	}
	d.Identity = IdentityOf(key)
	return d, nil
}

func openToDump(rawURL string) (*sql.DB, error) {
	if isPostgres(rawURL) { // with errors that say when the server is away
		cfg, err := parsePostgres(rawURL)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(reached{stdlib.GetConnector(*cfg.ConnConfig)}), nil
	}
	read, err := openToRead(rawURL)
	if err != nil {
		return nil, err
	}
	return read.DB, nil
}

// Rows gives all rows of all tables, in the order in which they can be inserted.
func (d *Dump) Rows(ctx context.Context, to RowWriter) error {
	return dumpRows(ctx, d.tx, d.postgres, to)
}

func dumpRows(ctx context.Context, q queries, postgres bool, to RowWriter) error {
	for _, name := range backedUp() {
		t, err := columnsOf(ctx, q, postgres, name)
		if err != nil {
			return err
		}
		if len(t.Columns) == 0 {
			continue // a later version has it
		}
		if err = dumpTable(ctx, q, t, "SELECT "+names(t)+" FROM "+name, to); err != nil {
			return err
		}
	}
	return dumpTable(ctx, q, jobsTable(), selectJobs(postgres), jobWriter{to})
}

// selectJobs asks for jobsTable.
func selectJobs(postgres bool) string {
	at, args := "CAST(ROUND((julianday(scheduled_at) - 2440587.5) * 86400000) AS INTEGER)", "json(args)"
	if postgres {
		at, args = "CAST(EXTRACT(EPOCH FROM scheduled_at) * 1000 AS bigint)", "args::text"
	}
	states := make([]string, 0, len(unfinished()))
	for _, s := range unfinished() {
		states = append(states, "'"+string(s)+"'")
	}
	return "SELECT kind, queue, " + at + ", " + args + " FROM river_job WHERE state IN (" +
		strings.Join(states, ", ") + ") ORDER BY id"
}

// jobWriter writes the arguments of jobs in one form: the engines keep the fields of a document in different orders.
type jobWriter struct{ RowWriter }

// Row implements RowWriter.
func (j jobWriter) Row(values []any) error {
	row := slices.Clone(values)
	i := jobsTable().Index("args")
	text, is := row[i].([]byte)
	if s, isText := row[i].(string); isText {
		text, is = []byte(s), true
	}
	if is {
		var v any
		in := json.NewDecoder(bytes.NewReader(text))
		in.UseNumber()
		if err := in.Decode(&v); err != nil {
			return fmt.Errorf("read arguments of a job: %w", err)
		}
		plain, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("write arguments of a job: %w", err)
		}
		row[i] = string(plain)
	}
	return j.RowWriter.Row(row)
}

func dumpTable(ctx context.Context, q queries, t rows.Table, query string, to RowWriter) (err error) {
	if err = to.Table(t); err != nil {
		return err
	}
	found, err := q.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("read table %s: %w", t.Name, err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	values, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
	for i := range values {
		into[i] = &values[i]
	}
	for found.Next() {
		if err = found.Scan(into...); err != nil {
			return fmt.Errorf("read row of %s: %w", t.Name, err)
		}
		if err = to.Row(values); err != nil {
			return err
		}
	}
	if err = found.Err(); err != nil {
		return fmt.Errorf("read table %s: %w", t.Name, err)
	}
	return nil
}

// Close lets go of the database.
func (d *Dump) Close() error {
	var err error
	if d.tx != nil {
		if err = d.tx.Rollback(); errors.Is(err,
			sql.ErrTxDone) { // nothing was written; the end of a context has done it
			err = nil
		}
	}
	if err = errors.Join(err, d.pool.Close()); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}
