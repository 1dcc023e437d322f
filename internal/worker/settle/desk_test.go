package settle

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestDesk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		desk := NewDesk(2)
		var now, most atomic.Int64
		end := make(chan struct{})
		for range 5 {
			go func() {
				_ = desk.Examine(t.Context(), func() error {
					if n := now.Add(1); n > most.Load() {
						most.Store(n)
					}
					<-end
					now.Add(-1)
					return nil
				})
			}()
		}
		synctest.Wait()
		if n := now.Load(); n != 2 {
			t.Errorf("%d are looked into at once, want 2", n)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		if err := desk.Examine(ctx, func() error { return nil }); !errors.Is(err, gone) {
			t.Errorf("without a place: %v", err)
		}
		close(end)
		synctest.Wait()
		if now.Load() != 0 || most.Load() != 2 {
			t.Errorf("%d are left, and there were %d at once", now.Load(), most.Load())
		}
		func() {
			defer func() { _ = recover() }()
			_ = desk.Examine(t.Context(), func() error { panic("a file that nobody thought of") })
		}()
		if len(desk) != 0 {
			t.Error("its place is taken for ever")
		}
	})
	if err := Desk(nil).Examine(t.Context(), func() error { return nil }); err != nil {
		t.Error(err)
	}
}
