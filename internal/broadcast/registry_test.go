package broadcast

import (
	"context"
	"testing"
	"testing/synctest"
)

// TestBegun: who looks for a broadcast that an admission is about to begin waits for that, and for no other stream's.
func TestBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry()
		first, second := r.open("one"), r.open("one")
		other := r.open("other")
		waited, gone := make(chan struct{}), make(chan struct{})
		ctx, leave := context.WithCancel(t.Context())
		go func() { r.begun(t.Context(), "one"); close(waited) }()
		go func() { r.begun(ctx, "one"); close(gone) }()
		r.begun(t.Context(), "third") // nobody begins it
		other()
		first()
		leave()
		<-gone
		synctest.Wait()
		select {
		case <-waited:
			t.Error("nobody waited for the second admission")
		default:
		}
		second()
		<-waited
	})
}
