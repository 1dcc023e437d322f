package encode

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The diagram is a golden file, so that a new arrow is seen in review.
func TestStateDiagram(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for _, s := range States() {
		ends := true
		for _, f := range Facts() {
			if to, ok := Next(s, f); ok {
				fmt.Fprintf(&b, "    %s --> %s: %s\n", s, to, f)
				ends = false
			}
		}
		if ends {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	golden(t, "testdata/state.golden.mmd", b.String())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

// A child only moves forward: no arrow leads to an earlier state and none out of an end.
func TestStatesOnlyMoveForward(t *testing.T) {
	t.Parallel()
	order := map[State]int{}
	for i, s := range States() {
		order[s] = i
	}
	for _, s := range States() {
		for _, f := range Facts() {
			if to, ok := Next(s, f); ok && order[to] <= order[s] {
				t.Errorf("%s leads back from %s to %s", f, s, to)
			}
		}
	}
}
