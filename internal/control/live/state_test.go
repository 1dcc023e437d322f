package live

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

var (
	states = []State{Idle, Connected, Recording, Active, Waiting, Reconnecting, Disabled}
	facts  = []Fact{
		PublisherConnected, FirstFrames, Playable, PublisherLost, BroadcastEnded, DisabledByOwner, EnabledByOwner,
	}
)

// diagram writes a table of states as a golden file, so a changed transition is seen in review.
func diagram[S, F ~string](t *testing.T, golden string, states []S, facts []F, rows map[S]map[F]S) {
	t.Helper()
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	arrows := 0
	for _, s := range states {
		for _, f := range facts {
			if to, ok := rows[s][f]; ok {
				arrows++
				fmt.Fprintf(&b, "    %s --> %s: %s\n", s, to, f)
			}
		}
	}
	for _, row := range rows {
		arrows -= len(row)
	}
	if arrows != 0 {
		t.Errorf("the table has %d transitions of states or facts that this test does not list", -arrows)
	}
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("diagram changed; run with -update\n%s", b.String())
	}
}

func TestStateDiagram(t *testing.T) {
	t.Parallel()
	diagram(t, "testdata/state.golden.mmd", states, facts, next)
}

// TestEveryStateCanLeaveAndBeReached finds dead ends and orphans.
func TestEveryStateCanLeaveAndBeReached(t *testing.T) {
	t.Parallel()
	reached := []State{Idle}
	for i := 0; i < len(reached); i++ {
		for _, to := range next[reached[i]] {
			if !slices.Contains(reached, to) {
				reached = append(reached, to)
			}
		}
	}
	for _, s := range states {
		if !slices.Contains(reached, s) {
			t.Errorf("%s is never reached", s)
		}
		leaves := false
		for _, to := range next[s] {
			leaves = leaves || to != s
		}
		if !leaves {
			t.Errorf("%s is a dead end", s)
		}
	}
}

// TestEveryRunningStateEnds says that a broadcast can end from wherever it is.
func TestEveryRunningStateEnds(t *testing.T) {
	t.Parallel()
	for _, s := range states {
		if to, ok := Next(s, BroadcastEnded); !ok || to != Idle && to != Disabled {
			t.Errorf("%s after the end of the broadcast is %q, want idle or disabled", s, to)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	want := map[Status][]State{
		StatusIdle: {Idle, Connected, Recording, Waiting}, StatusActive: {Active, Reconnecting},
		StatusDisabled: {Disabled},
	}
	n := 0
	for status, in := range want {
		if got := StatesOf(status); !slices.Equal(got, in) {
			t.Errorf("states of %s are %v, want %v", status, got, in)
		}
		n += len(in)
	}
	if n != len(states) {
		t.Errorf("%d of %d states have a status", n, len(states))
	}
}
