package encode

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// part is what waits in TestShortWorkGoesFirst.
type part struct {
	name     string
	priority Priority
	left     time.Duration
}

// admitted is the order in which parts are let in that wait one by one while all is taken.
func admitted(t *testing.T, parts []part) (order []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(BudgetOptions{Cores: 1})
		var taken []func()
		for _, p := range []Priority{Background, OnDemand} {
			release, err := b.Acquire(t.Context(), p, 1)
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, release)
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		for _, w := range parts {
			all.Go(func() {
				release, err := b.AcquirePart(t.Context(), w.priority, 1, w.left)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, w.name)
				mu.Unlock()
				release()
			})
			synctest.Wait()
		}
		for _, release := range taken {
			release()
			synctest.Wait()
		}
		all.Wait()
	})
	return order
}

// TestShortWorkGoesFirst: of work in parts what is done soonest goes first, in front of longer work that came before;
// of two that are as long the one that came first does; and whose length nobody knows neither passes nor is passed.
func TestShortWorkGoesFirst(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		parts []part
		want  []string
	}{
		"short behind long": {[]part{
			{"hours", Background, 10 * time.Hour},
			{"hours again", Background, 10 * time.Hour},
			{"minute", Background, time.Minute},
			{"half a minute", Background, 30 * time.Second},
		}, []string{"half a minute", "minute", "hours", "hours again"}},
		"as long": {[]part{
			{"first", Background, time.Minute},
			{"second", Background, time.Minute},
			{"first, further on", Background, 45 * time.Second},
		}, []string{"first, further on", "first", "second"}},
		"nobody knows": {[]part{
			{"hours", Background, 10 * time.Hour},
			{"a file", Background, 0},
			{"minute", Background, time.Minute},
			{"another file", Background, 0},
		}, []string{"hours", "a file", "minute", "another file"}},
		"another priority": {[]part{
			{"first play", FirstPlay, 10 * time.Hour}, {"segment", OnDemand, time.Second},
		}, []string{"first play", "segment"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := admitted(t, tt.parts); !slices.Equal(got, tt.want) {
				t.Errorf("let in: %q, want %q", got, tt.want)
			}
		})
	}
}

// TestLongWorkGetsOn: however much short work there is, a part of long work is not passed for ever.
func TestLongWorkGetsOn(t *testing.T) {
	t.Parallel()
	parts := []part{{"long", Background, time.Hour}}
	for range 3 * mostPasses {
		parts = append(parts, part{"short", Background, time.Minute})
	}
	if at := slices.Index(admitted(t, parts), "long"); at != mostPasses {
		t.Errorf("%d short parts went first, want %d", at, mostPasses)
	}
}
