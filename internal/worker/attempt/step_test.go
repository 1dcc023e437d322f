package attempt_test

import (
	"testing"
	"time"

	"millrace/internal/worker/attempt"
)

// TestWorth: steps are written down that are large, or that took long, and no step back.
func TestWorth(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	last := attempt.Step{Percent: 40, At: begun}
	for _, tt := range []struct {
		percent float64
		after   time.Duration
		want    bool
	}{
		{42, 0, true},
		{41.9, 14 * time.Second, false},
		{40.1, 15 * time.Second, true},
		{40, time.Hour, false},
		{30, time.Hour, false},
	} {
		if got := last.Worth(tt.percent, begun.Add(tt.after)); got != tt.want {
			t.Errorf("%g %% after %s: %t", tt.percent, tt.after, got)
		}
	}
}
