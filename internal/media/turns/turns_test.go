package turns_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"millrace/internal/fault"
	"millrace/internal/media/turns"
)

// TestLine: places and bytes are shared, addresses take turns, and who has most makes way.
func TestLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := turns.New(turns.Options{What: "things", Places: 2, Bytes: 100, Waiting: 4})
		var mu sync.Mutex
		var order []string
		inside := map[string]*turns.Turn{}
		ask := func(from string, bytes int64) {
			go func() {
				g, err := r.Enter(t.Context(), from, 0, bytes)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					if !fault.Is(err, fault.Unavailable) || !errors.Is(err, turns.ErrFull) {
						t.Error(err)
					}
					order = append(order, from+" goes")
					return
				}
				order = append(order, from)
				inside[fmt.Sprintf("%s%d", from, len(order))] = g
			}()
			synctest.Wait()
		}
		want := func(said string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if got := strings.Join(order, ", "); got != said {
				t.Errorf("%s, want %s", got, said)
			}
		}
		for range 6 {
			ask("a", 10)
		}
		want("a, a") // four wait
		ask("a", 10)
		want("a, a, a goes") // it has as many as anybody
		ask("b", 60)
		want("a, a, a goes, a goes") // one of theirs makes way
		inside["a1"].Leave()
		want("a, a, a goes, a goes, b")
		ask("c", 60)
		inside["b5"].Made(5) // what is left of it is to be kept
		want("a, a, a goes, a goes, b, c")
		inside["a2"].Leave()
		want("a, a, a goes, a goes, b, c, a")
		inside["b5"].Leave()
		inside["a7"].Leave()
		want("a, a, a goes, a goes, b, c, a, a")
		ask("d", 95)
		inside["c6"].Leave()
		want("a, a, a goes, a goes, b, c, a, a") // d is next and does not fit yet, and nobody passes it
		inside["a8"].Leave()
		want("a, a, a goes, a goes, b, c, a, a, d")
		inside["d9"].Leave()
		want("a, a, a goes, a goes, b, c, a, a, d, a")
		inside["a10"].Leave()
		ctx, cancel := context.WithCancel(t.Context())
		hold, err := r.Enter(ctx, "a", 0, 1000) // as much as there is
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := r.Enter(ctx, "b", 0, 1)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("who gives up is told %v", err)
			}
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		hold.Leave()
		if got := r.Left(); got != [4]int64{2, 100, 0, 0} {
			t.Errorf("in the end: %v", got)
		}
	})
}

// TestOnePlace: with a single place, too, an address that has much waiting takes turns with others, and the higher rank
// of an address goes first.
func TestOnePlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line := turns.New(turns.Options{What: "things", Places: 1, Waiting: 64})
		hold, err := line.Enter(t.Context(), "crawler", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		ask := func(from string, rank int) {
			go func() {
				turn, err := line.Enter(t.Context(), from, rank, 0)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, fmt.Sprintf("%s%d", from, rank))
				mu.Unlock()
				turn.Leave()
			}()
			synctest.Wait()
		}
		for range 3 {
			ask("crawler", 0)
		}
		ask("viewer", 0)
		ask("viewer", 1)
		ask("other", 0)
		hold.Leave()
		synctest.Wait()
		if got := strings.Join(order, " "); got != "viewer1 other0 crawler0 viewer0 crawler0 crawler0" {
			t.Error(got)
		}
		if got := line.Left(); got != [4]int64{1, 1, 0, 0} {
			t.Errorf("in the end: %v", got)
		}
	})
}
