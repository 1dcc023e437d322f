package db_test

import (
	"context"
	"errors"
	"testing"

	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestCancelledTransaction cancels a transaction between two queries. Its connection goes back to the pool behind the
// rollback: before it, two goroutines would have the same one.
func TestCancelledTransaction(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		err := d.InTransaction(ctx, func(exec func(context.Context, string) error) error {
			must(t, exec(ctx, "SELECT 1"))
			cancel()
			if err := exec(ctx, "SELECT 1"); !errors.Is(err, context.Canceled) {
				t.Errorf("a query after the end: %v, want %v", err, context.Canceled)
			}
			if err := exec(context.WithoutCancel(ctx), "SELECT 1"); err != nil {
				t.Errorf("the transaction has lost its connection: %v", err)
			}
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the transaction: %v, want %v", err, context.Canceled)
		}
		must(t, d.Ping(t.Context()))
	})
}
