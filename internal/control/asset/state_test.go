package asset

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestStateDiagrams writes both tables as diagrams, so a changed transition is seen in review, and finds what is never
// reached and what does not come to an end.
func TestStateDiagrams(t *testing.T) {
	t.Parallel()
	facts := []Fact{BecamePlayable, WorkFailed}
	diagram(t, "testdata/state.golden.mmd", []Status{Preparing, Ready, Errored}, facts, Next, len(next))
	diagram(t, "testdata/track_state.golden.mmd", []TrackStatus{TrackPreparing, TrackReady, TrackErrored}, facts,
		NextTrack, len(nextTrack))
	diagram(t, "testdata/file_state.golden.mmd", []FileStatus{FilePreparing, FileReady, FileSkipped, FileErrored},
		append(facts, NothingToMake), NextFile, len(nextFile))
}

func diagram[S ~string](t *testing.T, golden string, states []S, facts []Fact, next func(S, Fact) (S, bool), rows int) {
	t.Helper()
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	reached := map[S]bool{states[0]: true}
	leaving := 0
	for _, s := range states {
		ways := 0
		for _, f := range facts {
			if to, ok := next(s, f); ok {
				ways++
				reached[to] = true
				fmt.Fprintf(&b, "    %s --> %s: %s\n", s, to, f)
			}
		}
		if ways > 0 {
			leaving++
		}
	}
	if len(reached) != len(states) || leaving != rows || leaving == len(states) {
		t.Errorf("%s: %d of %d states are reached, %d of %d rows seen; there has to be an end", golden, len(reached),
			len(states), leaving, rows)
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
		t.Errorf("%s changed; run with -update\n%s", golden, b.String())
	}
}
