package limit

import (
	"fmt"
	"testing"
	"time"
)

func TestTake(t *testing.T) {
	t.Parallel()
	l, now := New(2), time.Unix(1000, 0)
	for i := range 20 {
		if wait := l.Take("a", now); wait != 0 {
			t.Fatalf("request %d waits %v", i, wait)
		}
	}
	for range 3 { // what is refused does not count
		if wait := l.Take("a", now); wait != 500*time.Millisecond {
			t.Fatalf("waits %v", wait)
		}
	}
	if wait := l.Take("b", now); wait != 0 {
		t.Errorf("another one waits %v", wait)
	}
	if wait := l.Take("a", now.Add(500*time.Millisecond)); wait != 0 {
		t.Errorf("waits %v after the time that it was told", wait)
	}
	if wait := New(0).Take("a", now); wait != 0 {
		t.Errorf("without a limit it waits %v", wait)
	}
}

// TestMemory has many ask: those who ask all the time are not forgotten, and the rest is.
func TestMemory(t *testing.T) {
	t.Parallel()
	l, now := New(1), time.Unix(1000, 0)
	for i := range 3 * generation {
		l.Take(fmt.Sprint(i), now)
		l.Take("busy", now)
	}
	if wait := l.Take("busy", now); wait == 0 {
		t.Error("one who asks all the time was forgotten")
	}
	if n := len(l.young) + len(l.old); n > 2*generation {
		t.Errorf("%d keys are kept", n)
	}
}

func BenchmarkTake(b *testing.B) {
	l, now := New(1000), time.Now()
	for b.Loop() {
		l.Take("8d1f0c1e-0000-4000-8000-000000000001", now)
		now = now.Add(time.Millisecond)
	}
}
