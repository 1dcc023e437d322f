package streams

import (
	"testing"

	"millrace/internal/media/health"
)

// TestAdvice: of each kind of trouble, message or advice says what to do.
func TestAdvice(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{
		health.BitrateCollapsed: true, health.AudioMissing: true, health.VideoMissing: true, health.FrameRateLow: true,
		health.EncoderTooSlow: true, health.TimestampsBroken: true,
		health.KeyFramesFarApart: false, health.ClockJumped: false, health.FrameRateVariable: false,
		health.PacketsLost: false, health.AudioClockOff: false, health.SubtitlesBehind: false, "another": false,
	} {
		if got := Advice(kind) != ""; got != want {
			t.Errorf("%s has advice: %t", kind, got)
		}
	}
}
