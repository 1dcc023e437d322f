package db

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
)

// TestLogBeginsAnew although it is written to without a pause, and before a writer has to see to it.
func TestLogBeginsAnew(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Options{URL: filepath.Join(t.TempDir(), "db")})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	e := d.engine.(*sqliteEngine)
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
