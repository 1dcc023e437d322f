package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"millrace/internal/fault"
)

// absent is a server that refuses connections.
type absent struct{ err error }

func (a absent) Connect(context.Context) (driver.Conn, error) { return nil, a.err }
func (a absent) Driver() driver.Driver                        { return nil }

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
