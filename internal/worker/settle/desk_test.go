package settle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestDesk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		desk, now, most := NewDesk(2), 0, 0
		end := make(chan struct{})
		for range 5 {
			go func() {
				_ = desk.Examine(t.Context(), func() error {
					now++
					most = max(most, now)
					<-end
					now--
					return nil
				})
			}()
		}
		synctest.Wait()
		if most != 2 {
			t.Errorf("%d are looked into at once, want 2", most)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		if err := desk.Examine(ctx, func() error { return nil }); !errors.Is(err, gone) {
			t.Errorf("without a place: %v", err)
		}
		close(end)
		synctest.Wait()
		if now != 0 || most != 2 {
			t.Errorf("%d are left, and there were %d at once", now, most)
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
