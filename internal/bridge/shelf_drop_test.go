package bridge

import (
	"context"
	"testing"
	"time"
)

func TestShelfDrop(t *testing.T) {
	t.Parallel()
	s, now := newShelf[string, int](10, time.Hour), time.Now()
	is := func(n int) func(context.Context) (int, error) {
		return func(context.Context) (int, error) { return n, nil }
	}
	expect := func(what string, n, want int) {
		t.Helper()
		if got, err := s.get(t.Context(), "k", now, is(n)); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", what, got, err, want)
		}
	}
	expect("asked", 1, 1)
	expect("kept", 2, 1)
	s.drop("k")
	expect("dropped", 3, 3)
	s.dropIf(func(n int) bool { return n == 4 })
	expect("another was dropped", 5, 3)
	s.dropIf(func(n int) bool { return n == 3 })
	if _, err := s.get(t.Context(), "k", now, func(context.Context) (int, error) {
		s.drop("k") // the change comes while the source answers: what it says may be older
		return 6, nil
	}); err != nil {
		t.Error(err)
	}
	expect("what was old on arrival is not kept", 7, 7)
}
