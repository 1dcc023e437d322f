package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"millrace/internal/fault"
)

// absent is a server that refuses connections.
type absent struct{ err error }

func (a absent) Connect(context.Context) (driver.Conn, error) { return nil, a.err }
func (a absent) Driver() driver.Driver                        { return nil }

func TestAway(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want fault.Kind
	}{
		{&pgconn.PgError{Code: "57P01"}, fault.Unavailable},
		{&pgconn.PgError{Code: "57P02"}, fault.Unavailable},
		{&pgconn.PgError{Code: "57P03"}, fault.Unavailable},
		{&pgconn.PgError{Code: "53100"}, fault.Unavailable}, // disk_full
		{&pgconn.PgError{Code: "53300"}, fault.Unavailable}, // too_many_connections
		{&pgconn.PgError{Code: "25006"}, fault.Unavailable}, // read_only_sql_transaction
		{&pgconn.PgError{Code: "57014"}, fault.Internal},    // query_canceled
		{&pgconn.PgError{Code: "23505"}, fault.Internal},    // unique_violation
		{&pgconn.ConnectError{}, fault.Unavailable},
		{io.EOF, fault.Unavailable},
		{io.ErrUnexpectedEOF, fault.Unavailable},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, fault.Unavailable},
		{net.ErrClosed, fault.Unavailable},
		{pgconn.ErrConnClosed, fault.Unavailable},
		{busy{}, fault.Unavailable},
		{driver.ErrBadConn, fault.Unavailable},
		{sql.ErrNoRows, fault.Internal},
		{errors.New("other"), fault.Internal},
		{fault.New(fault.Conflict, "moved on"), fault.Conflict},
	} {
		err := fmt.Errorf("write row: %w", tt.err)
		got := away(t.Context(), err)
		if fault.KindOf(got) != tt.want || !errors.Is(got, tt.err) {
			t.Errorf("%v becomes %v of kind %v, want %v", err, got, fault.KindOf(got), tt.want)
		}
		if again := away(t.Context(), got); again != got { //nolint:errorlint // the very same
			t.Errorf("%v is marked twice", again)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		want := err
		if errors.Is(err, driver.ErrBadConn) { // which database/sql would take from a transaction that still uses it
			want = context.Canceled
		}
		if got := away(ended, err); got != want { //nolint:errorlint // the very same
			t.Errorf("%v of a request that was given up becomes %v", err, got)
		}
	}
	if away(t.Context(), nil) != nil {
		t.Error("no error is one")
	}
}

// busy is an error of the driver from before anything was sent.
type busy struct{}

func (busy) Error() string     { return "conn busy" }
func (busy) SafeToRetry() bool { return true }

func TestUnreachableDatabaseIsAway(t *testing.T) {
	t.Parallel()
	refused := errors.New("connection refused")
	d := sql.OpenDB(reached{absent{refused}})
	defer func() { _ = d.Close() }()
	err := fmt.Errorf("read token: %w", d.PingContext(t.Context()))
	if fault.KindOf(err) != fault.Unavailable || !errors.Is(err, refused) {
		t.Errorf("%v is of kind %v", err, fault.KindOf(err))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.PingContext(ctx); fault.KindOf(err) == fault.Unavailable {
		t.Errorf("a request that was given up says %v", err)
	}
}
