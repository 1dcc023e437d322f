package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"millrace/internal/fault"
)

// away marks err as fault.Unavailable, which callers may wait out, when the PostgreSQL server is away or went away
// meanwhile. What was asked for may have been done nevertheless, if the response to a commit was lost.
func away(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, driver.ErrBadConn) {
		return context.Cause(ctx) //nolint:wrapcheck // database/sql takes a bad connection away, even from a transaction
	}
	if err == nil || ctx.Err() != nil || fault.Is(err, fault.Unavailable) || !ended(err) {
		return err // with ctx, a connection ends because the caller wants it
	}
	return gone(err)
}

// Away reports whether err says that the database can't be reached for now.
func Away(err error) bool { return fault.Is(err, fault.Unavailable) || ended(err) }

// full marks err as fault.Unavailable when SQLite could not write for want of room, which passes once there is some
// again, or because another process writes.
func full(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch e.Code() {
	case sqlite3.SQLITE_BUSY:
		return locked(err)
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE:
		// a quota is the second, the index of the log the third
		return fault.Wrap(fault.Unavailable, err, "the disk of the database is full")
	}
	return err
}

// locked says that others were writing for too long.
func locked(err error) error {
	e := fault.Wrap(fault.Unavailable, err, "the database is locked")
	e.RetryAfter = lockAgain
	return e
}

func gone(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the database can't be reached")
}

// ended reports whether err is the end of a connection, or of what the server can do for now, and not a response to a
// query.
func ended(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case "57P01", "57P02", "57P03", // admin_shutdown, crash_shutdown, cannot_connect_now
			"25P03",  // idle_in_transaction_session_timeout
			readOnly: // another server has taken its place
			return true
		}
		return strings.HasPrefix(e.Code, "53") // insufficient resources: its disk is full, it has too many connections
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	if pgconn.SafeToRetry(err) { // among others "conn closed" and "conn busy", whose type has no name
		return true
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, pgconn.ErrConnClosed, driver.ErrBadConn} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// reached makes connections whose errors say that the database is away when it is.
type reached struct{ driver.Connector }

func (r reached) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := r.Connector.Connect(ctx)
	if err != nil && ctx.Err() == nil {
		return nil, gone(err)
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller's own end
	}
	std, ok := conn.(*stdlib.Conn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("connection is a %T", conn), conn.Close())
	}
	return reachedConn{std}, nil
}

// reachedConn is a connection of reached; database/sql sends everything through these methods.
type reachedConn struct{ *stdlib.Conn }

func (r reachedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := r.Conn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, away(ctx, err)
	}
	if std, ok := rows.(*stdlib.Rows); ok {
		return reachedRows{std, ctx}, nil
	}
	return rows, nil
}

func (r reachedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := r.Conn.ExecContext(ctx, query, args)
	return result, away(ctx, err)
}

func (r reachedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := r.Conn.PrepareContext(ctx, query)
	return stmt, away(ctx, err)
}

func (r reachedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := r.Conn.BeginTx(ctx, opts)
	return tx, away(ctx, err)
}

func (r reachedConn) Ping(ctx context.Context) error { return away(ctx, r.Conn.Ping(ctx)) }

func (r reachedConn) ResetSession(ctx context.Context) error {
	return away(ctx, r.Conn.ResetSession(ctx))
}

// reachedRows are the rows of a query whose connection may end before the last one.
type reachedRows struct {
	*stdlib.Rows

	ctx context.Context //nolint:containedctx // of the one query that the rows are the response to
}

func (r reachedRows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err == io.EOF { //nolint:errorlint // exactly this value is the end of the rows
		return err
	}
	return away(r.ctx, err)
}
