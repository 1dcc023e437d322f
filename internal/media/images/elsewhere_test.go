package images_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/claim"
	"millrace/internal/claim/claimtest"
	"millrace/internal/id"
)

// Of several nodes that are asked for an animation at the same time one makes it, and all give the same. In a bubble no
// time passes while a program runs: however long a busy machine takes for it, the others wait. None may wait for work,
// then.
func TestOneNodeMakesAnImage(t *testing.T) {
	t.Parallel()
	f := sixSeconds(t)
	synctest.Test(t, func(t *testing.T) {
		s, shared := &store{m: map[string][]byte{}}, claimtest.NewMemory()
		var animations atomic.Int32
		var nodes []*studio
		t.Cleanup(func() { // once both have ended
			if left := shared.Claimed(); len(left) > 0 {
				t.Errorf("still claimed: %v", left)
			}
		})
		for _, name := range []string{"a", "b"} {
			claimer := claim.New(claim.Options{
				Store: shared, Node: id.Node(name), Run: "1", Now: time.Now, Logger: slog.New(slog.DiscardHandler),
			})
			ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
			var all sync.WaitGroup
			all.Go(func() { _ = claimer.Run(ctx) }) // ends with ctx
			t.Cleanup(func() {                      // after what the studio does at its end
				cancel()
				all.Wait()
			})
			nodes = append(nodes, node(t, s, claimer, &animations, 0))
		}
		var asked sync.WaitGroup
		got := make([][]byte, 4)
		for i := range got {
			asked.Go(func() {
				var err error
				if got[i], _, err = nodes[i%2].ask(f, "animated.gif", "start=1&end=3"); err != nil {
					t.Error(err)
				}
			})
		}
		asked.Wait()
		for i := range got {
			if len(got[i]) == 0 || !bytes.Equal(got[i], got[0]) {
				t.Errorf("viewer %d has %d bytes, the first one %d", i, len(got[i]), len(got[0]))
			}
		}
		if n := animations.Load(); n != 1 {
			t.Errorf("made %d times", n)
		}
	})
}
