package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// reading holds SQLite's readers back for a moment. Each statement that reads has one of its places, from its beginning
// until its rows are closed; who holds them back takes all, in the order in which they come.
type reading struct{ places *semaphore.Weighted }

func newReading() reading { return reading{semaphore.NewWeighted(readers)} }

// hold waits until nobody reads. Nobody begins to read from now until the returned function is called, but for most at
// the longest: then readers go on, whatever holds them back, and that function says that they were not held until then.
// An error says that somebody read for as long, or that ctx has ended.
func (r reading) hold(ctx context.Context, most time.Duration) (goOn func() (held bool), err error) {
	limited, cancel := context.WithTimeout(ctx, most)
	if err = r.places.Acquire(limited, readers); err != nil {
		cancel()
		return nil, fmt.Errorf("wait for readers: %w", err)
	}
	release := sync.OnceFunc(func() { r.places.Release(readers) })
	context.AfterFunc(limited, release)
	return func() bool {
		defer cancel()
		release()
		return limited.Err() == nil
	}, nil
}

// readConnector makes the connections that are held back.
type readConnector struct {
	driver.Connector

	reading reading
}

// Connect waits too: a new connection reads the file.
func (r readConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := r.reading.places.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait to open database for reading: %w", err)
	}
	defer r.reading.places.Release(1)
	conn, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // what database/sql would get
	}
	able, ok := conn.(ableConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("connection is a %T", conn), conn.Close())
	}
	return readConn{able: able, reading: r.reading}, nil
}

// ableConn is what database/sql uses of SQLite's connections to read.
type ableConn interface {
	driver.Conn
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// readConn reads by single statements. Transactions and prepared statements would be further ways to read, and nobody
// needs them.
type readConn struct {
	able    ableConn
	reading reading
}

var errSingleStatements = errors.New("this connection reads by single statements")

func (readConn) Prepare(string) (driver.Stmt, error) { return nil, errSingleStatements }
func (readConn) Begin() (driver.Tx, error)           { return nil, errSingleStatements }
func (r readConn) Close() error                      { return r.able.Close() } //nolint:wrapcheck // as database/sql would get it
func (r readConn) IsValid() bool                     { return r.able.IsValid() }

func (r readConn) ResetSession(ctx context.Context) error {
	return r.able.ResetSession(ctx) //nolint:wrapcheck // a certain value
}

func (r readConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := r.reading.places.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait to read: %w", err)
	}
	leave, begun := sync.OnceFunc(func() { r.reading.places.Release(1) }), false
	defer func() {
		if !begun {
			leave()
		}
	}()
	rows, err := r.able.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err //nolint:wrapcheck // as database/sql would get it
	}
	typed, ok := rows.(typedRows)
	if !ok {
		return nil, errors.Join(fmt.Errorf("rows are a %T", rows), rows.Close())
	}
	begun = true
	return readRows{typed, leave}, nil
}

// typedRows is what database/sql uses of SQLite's rows.
type typedRows interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeLength
	driver.RowsColumnTypeNullable
	driver.RowsColumnTypePrecisionScale
	driver.RowsColumnTypeScanType
}

// readRows are read until they are closed.
type readRows struct {
	typedRows

	leave func()
}

func (r readRows) Close() error {
	defer r.leave()
	return r.typedRows.Close() //nolint:wrapcheck // as database/sql would get it
}
