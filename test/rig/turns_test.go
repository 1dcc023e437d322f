package rig

import (
	"errors"
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
		"one that has room":            {busy: 0.99, least: 2, within: 2100 * time.Millisecond, want: 2},
		"one that has had room enough": {busy: 0.99, least: 2, within: 2200 * time.Millisecond, want: 3},
		"one by one":                   {least: 4, within: 4400 * time.Millisecond, want: 6},
		"one that doesn't tell":        {err: errors.New("no such file"), least: 4, within: time.Hour, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			now := begin
			q := turns{running: map[string]bool{}, processors: 2, busy: func() (time.Duration, error) {
				return time.Duration(tt.busy * float64(now.Sub(begin))), tt.err
			}}
			got := 0
			for ; now.Sub(begin) < tt.within; now = now.Add(100 * time.Millisecond) {
				if q.begin(string(rune('a'+got)), kind{tt.least, 50}, now) {
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
	q := turns{running: map[string]bool{}, busy: func() (time.Duration, error) { return 0, nil }}
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
		q.endParents(step.begin)
		if got := q.begin(step.begin, kind{2, 50}, now); got != step.want {
			t.Fatalf("after the end of %q, %q begins: %t", step.end, step.begin, got)
		}
	}
}
