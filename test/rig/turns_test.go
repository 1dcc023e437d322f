package rig

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestTurns: a few run at once however busy the machine is, and more, one after the other, where it has room.
func TestTurns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		busy   float64 // of two processors
		err    error
		least  int
		within time.Duration
		want   int // how many have begun by then
	}{
		"a busy machine":               {busy: 1.01, least: 2, within: time.Hour, want: 2},
		"one that has room":            {busy: 0.99, least: 2, within: span + 100*time.Millisecond, want: 2},
		"one that has had room enough": {busy: 0.99, least: 2, within: span + 200*time.Millisecond, want: 3},
		"one by one":                   {least: 4, within: 2*span + 400*time.Millisecond, want: 6},
		"the most of a package":        {least: 4, within: time.Hour, want: 8},
		"one that doesn't tell":        {err: errors.New("no such file"), least: 4, within: time.Hour, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			now := begin
			q := testTurns(t, placesFile(t), func() (time.Duration, error) {
				return time.Duration(tt.busy * float64(now.Sub(begin))), tt.err
			})
			got := 0
			for ; now.Sub(begin) < tt.within; now = now.Add(100 * time.Millisecond) {
				if begins(t, q, string(rune('a'+got)), tt.least, now) {
					got++
				}
			}
			if got != tt.want {
				t.Errorf("after %v %d have begun, want %d", tt.within, got, tt.want)
			}
		})
	}
}

// TestTurnsOfSubtests: a test that only waits for its subtests takes no turn from them, nor does one that has ended.
func TestTurnsOfSubtests(t *testing.T) {
	t.Parallel()
	now := time.Now()
	q := testTurns(t, placesFile(t), noRoom)
	for _, step := range []struct {
		begin, end string
		want       bool
	}{
		{begin: "TestA", want: true},
		{begin: "TestB", want: true},
		{begin: "TestC"},
		{begin: "TestA/x/1", want: true},
		{begin: "TestAB/x"},
		{end: "TestA/x/1", begin: "TestA/x/2", want: true},
		{begin: "TestC"},
		{end: "TestB", begin: "TestC", want: true},
	} {
		q.end(step.end)
		if got := begins(t, q, step.begin, 2, now); got != step.want {
			t.Fatalf("after the end of %q, %q begins: %t", step.end, step.begin, got)
		}
	}
}

// TestTurnsOfPackages: packages whose tests run at the same time share the places, and each gives back its own.
func TestTurnsOfPackages(t *testing.T) {
	t.Parallel()
	now, file := time.Now(), placesFile(t)
	a, b := testTurns(t, file, noRoom), testTurns(t, file, noRoom)
	for i, step := range []struct {
		q     *turns
		ends  string
		begin string
		want  bool
	}{
		{q: a, begin: "TestA", want: true},
		{q: b, begin: "TestB", want: true},
		{q: a, begin: "TestC"},
		{q: b, ends: "TestA", begin: "TestD"}, // not its own
		{q: a, ends: "TestA", begin: "TestC", want: true},
		{q: b, ends: "TestB", begin: "TestD", want: true},
		{q: a, begin: "TestE"},
	} {
		step.q.end(step.ends)
		if got := begins(t, step.q, step.begin, 2, now); got != step.want {
			t.Fatalf("step %d: %q begins: %t", i, step.begin, got)
		}
	}
}

// noRoom is a machine that doesn't tell what it does.
func noRoom() (time.Duration, error) { return 0, errors.New("no such file") }

func testTurns(t *testing.T, file string, busy func() (time.Duration, error)) *turns {
	t.Helper()
	q := newTurns(file, busy, 2)
	t.Cleanup(func() {
		for name := range q.begun {
			q.end(name)
		}
	})
	return q
}

func placesFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "places")
	if err := os.WriteFile(name, nil, 0o600); err != nil { // bytes that aren't there can be locked, too
		t.Fatal(err)
	}
	return name
}

// begins puts a test into the queue, if it is not there, and reports whether it begins.
func begins(t *testing.T, q *turns, name string, least int, now time.Time) bool {
	t.Helper()
	if !slices.ContainsFunc(q.queue.waiting, func(w waiter) bool { return w.name == name }) {
		q.wait(name, q.arrive(name, false))
	}
	begun, err := q.begin(name, kind{least: least, most: 4, idle: 50}, now)
	if err != nil {
		t.Fatal(err)
	}
	return begun
}
