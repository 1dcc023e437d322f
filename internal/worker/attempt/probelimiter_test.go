package attempt

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestProbeLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		probes := NewProbeLimiter(2)
		var now, most atomic.Int64
		end := make(chan struct{})
		for range 5 {
			go func() {
				_ = probes.Examine(t.Context(), func() error {
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
		if err := probes.Examine(ctx, func() error { return nil }); !errors.Is(err, gone) {
			t.Errorf("without a place: %v", err)
		}
		close(end)
		synctest.Wait()
		if now.Load() != 0 || most.Load() != 2 {
			t.Errorf("%d are left, and there were %d at once", now.Load(), most.Load())
		}
		func() {
			defer func() { _ = recover() }()
			_ = probes.Examine(t.Context(), func() error { panic("a file that nobody thought of") })
		}()
		if len(probes) != 0 {
			t.Error("its place is taken for ever")
		}
	})
	if err := ProbeLimiter(nil).Examine(t.Context(), func() error { return nil }); err != nil {
		t.Error(err)
	}
}
