package db

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"millrace/internal/fault"
	"millrace/internal/masterkey"
)

// TestFullDiskIsAway: a writer that finds no room may ask again, and is served once there is some.
func TestFullDiskIsAway(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Options{
		URL: filepath.Join(t.TempDir(), "db"), MasterKey: masterkey.Of(masterkey.Key{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	run := func(statement string) error {
		return d.engine.begin(t.Context(), func(ctx context.Context, t tx) error {
			if _, err := t.NewRaw(statement).Exec(ctx); err != nil {
				return fmt.Errorf("write row: %w", err)
			}
			return nil
		})
	}
	for _, step := range []struct {
		statement string
		want      fault.Kind
		fails     bool
	}{
		{statement: "CREATE TABLE large (data BLOB)"},
		{statement: "PRAGMA max_page_count = 1"}, // as many as it has
		{"INSERT INTO large VALUES (zeroblob(262144))", fault.Unavailable, true},
		{"INSERT INTO none VALUES (1)", fault.Internal, true},
		{statement: "PRAGMA max_page_count = 100000"},
		{statement: "INSERT INTO large VALUES (zeroblob(262144))"},
	} {
		if err := run(step.statement); (err != nil) != step.fails || fault.KindOf(err) != step.want {
			t.Errorf("%s: %v of kind %v", step.statement, err, fault.KindOf(err))
		}
	}
}
