package follow_test

import (
	"context"
	"errors"
	"testing"

	"millrace/internal/web/follow"
)

// TestPlaces: one key can't take the places of others, those who leave give theirs back, and those of a key share a
// value for as long as there are any.
func TestPlaces(t *testing.T) {
	t.Parallel()
	made := 0
	p := follow.Places[string, int]{All: 10, Each: 4, Make: func() int { made++; return made }}
	enter := func(key string) bool { _, ok := p.Enter(key); return ok }
	for range p.Each {
		if value, ok := p.Enter("a"); !ok || value != 1 {
			t.Fatal("a place is missing, or has another value")
		}
	}
	if enter("a") || !enter("b") || made != 2 {
		t.Error("one key has the places of all")
	}
	p.Leave("a")
	if !enter("a") || enter("a") {
		t.Error("a place that is given back is not one place")
	}
	for key := 'c'; p.Taken() < p.All; key++ {
		for range min(p.Each, p.All-p.Taken()) {
			if !enter(string(key)) {
				t.Fatal("a place is missing")
			}
		}
	}
	if enter("last") {
		t.Error("there is no bound of all")
	}
	p.Leave("b")
	if value, ok := p.Enter("b"); !ok || value == 2 {
		t.Error("a key that nobody follows keeps its value")
	}
}

// TestLock: who has gone does not wait.
func TestLock(t *testing.T) {
	t.Parallel()
	l := follow.NewLock()
	if err := l.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Lock(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone: %v", err)
	}
	l.Unlock()
	if err := l.Lock(t.Context()); err != nil {
		t.Error("it is not free again")
	}
}
