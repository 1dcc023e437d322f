package live

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

var (
	targetStates = []TargetState{TargetIdle, TargetStarting, TargetBroadcasting, TargetErrored, TargetFatal}
	targetFacts  = []TargetFact{SourceConnected, SourceLost, SourceEnded, LinkUp, LinkDown, LinkImpossible}
)

// TestTargetStateDiagram writes the table as a diagram, so a changed transition is seen in review.
func TestTargetStateDiagram(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	arrows := 0
	for _, s := range targetStates {
		for _, f := range targetFacts {
			if to, ok := NextTarget(s, f); ok {
				arrows++
				fmt.Fprintf(&b, "    %s --> %s: %s\n", s, to, f)
			}
		}
	}
	for _, row := range nextTarget {
		arrows -= len(row)
	}
	if arrows != 0 {
		t.Errorf("the table has %d transitions of states or facts that this test does not list", -arrows)
	}
	const golden = "testdata/target_state.golden.mmd"
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

// TestTargetStates says what holds in every state: the end of the broadcast leads back to idle, a target that failed for good does not
// hear of encoders, and the API shows a severity for what is errored alone.
func TestTargetStates(t *testing.T) {
	t.Parallel()
	for _, s := range targetStates {
		if to, ok := NextTarget(s, SourceEnded); s != TargetIdle && (!ok || to != TargetIdle) {
			t.Errorf("%s after the end is %q", s, to)
		}
		status, severity := s.Show()
		if (status == TargetStatusErrored) != (severity != SeverityNone) {
			t.Errorf("%s shows %q with severity %q", s, status, severity)
		}
	}
	for _, f := range []TargetFact{SourceConnected, SourceLost, LinkUp, LinkDown} {
		if to, ok := NextTarget(TargetFatal, f); ok {
			t.Errorf("%s takes a target that failed for good to %s", f, to)
		}
	}
	if to, ok := NextTarget("", SourceConnected); !ok || to != TargetStarting {
		t.Errorf("a target stored without a state goes to %q", to)
	}
}
