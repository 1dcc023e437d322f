package live

import (
	"testing"
)

var (
	targetStates = []TargetState{TargetIdle, TargetStarting, TargetBroadcasting, TargetErrored, TargetFatal}
	targetFacts  = []TargetFact{SourceConnected, SourceLost, SourceEnded, LinkUp, LinkDown, LinkImpossible}
)

func TestTargetStateDiagram(t *testing.T) {
	t.Parallel()
	diagram(t, "testdata/target_state.golden.mmd", targetStates, targetFacts, nextTarget)
}

// TestTargetStates says what holds in every state: the end of the broadcast leads back to idle, a target that failed
// for good does not hear of encoders, and the API shows a severity for what is errored alone.
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
