package db

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"millrace/internal/fault"
	"millrace/internal/masterkey"
)

// TestLogBeginsAgain although it is written to without a pause, and before a writer has to see to it.
func TestLogBeginsAgain(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Options{URL: filepath.Join(t.TempDir(), "db"), MasterKey: masterkey.Of(masterkey.Key{})})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	e := d.engine.(audited).engine.(*sqliteEngine)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	if _, err := d.write.NewRaw("CREATE TABLE large (data BLOB)").Exec(ctx); err != nil {
		t.Fatal(err)
	}
	written := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				err := e.begin(ctx, func(ctx context.Context, t tx) error {
					_, err := t.NewRaw("INSERT INTO large VALUES (zeroblob(262144))").Exec(ctx)
					return err
				})
				if err != nil && ctx.Err() == nil {
					t.Errorf("write: %v", err)
				}
				select {
				case written <- struct{}{}:
				case <-ctx.Done():
				}
			}
		})
	}
	for range longLog / 64 {
		<-written
	}
	done := make(chan error)
	go func() { done <- e.checkpoint(ctx) }()
	for checked := false; !checked; { // they write meanwhile
		select {
		case err := <-done:
			if checked = true; err != nil {
				t.Fatal(err)
			}
		case <-written:
		}
	}
	for range 8 { // what was about to be written
		<-written
	}
	if size, err := e.writeBack(ctx); err != nil || size > longLog/2 {
		t.Fatalf("the log has %d pages, %v", size, err)
	}
}

// TestFullDiskIsAway: a writer that finds no room may ask again, and is served once there is some.
func TestFullDiskIsAway(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Options{URL: filepath.Join(t.TempDir(), "db"), MasterKey: masterkey.Of(masterkey.Key{})})
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
