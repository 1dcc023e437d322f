package rig

import (
	"slices"
	"testing"
)

// TestQueue: long tests come first, then the others as they stand in their files; the subtests of a test come right
// after it, also those that arrive when others wait already.
func TestQueue(t *testing.T) {
	t.Parallel()
	q := queue{tops: map[string]rank{}}
	ranks := map[string]rank{}
	for _, name := range []string{"TestA", "TestB", "TestLong", "TestC"} {
		ranks[name] = q.arrive(name, name == "TestLong")
	}
	for _, name := range []string{"TestC", "TestA", "TestLong", "TestB"} { // in any order
		q.wait(name, ranks[name])
	}
	subtests := map[string][]string{
		"TestLong":   {"TestLong/x", "TestLong/y"},
		"TestLong/x": {"TestLong/x/1"},
		"TestA":      {"TestA/x"},
		"TestC":      {"TestC/x"},
	}
	var got []string
	for len(q.waiting) > 0 {
		name := q.waiting[0].name
		if !q.isNext(name) {
			t.Fatalf("%s does not begin", name)
		}
		q.leave(name)
		got = append(got, name)
		for _, sub := range subtests[name] {
			q.wait(sub, q.arrive(sub, true)) // is no test at the top, whatever it says
		}
	}
	want := []string{
		"TestLong", "TestLong/x", "TestLong/y", "TestLong/x/1", "TestA", "TestA/x", "TestB", "TestC", "TestC/x",
	}
	if !slices.Equal(got, want) {
		t.Errorf("begun as %q, want %q", got, want)
	}
}
