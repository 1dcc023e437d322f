package window

import (
	"testing"
	"time"
)

// TestLasts is for how long playlists need not grow, by latency mode and by what is not listed yet.
func TestLasts(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	segments := Mode{Listed: 30 * time.Second, InMemory: 2}
	for name, tt := range map[string]struct {
		mode          Mode
		target        int
		part          time.Duration // PART-TARGET
		open, segment time.Duration // not listed
		want          time.Duration
	}{
		"three parts, and a little more":  {low, 2, perPart, 0, time.Second, 930 * ms},
		"a part is open":                  {low, 2, perPart, 200 * ms, time.Second, 730 * ms},
		"parts are long":                  {low, 2, time.Second, 0, time.Second, 2 * time.Second},
		"no part is listed":               {low, 0, 0, 0, 0, 3 * time.Second},
		"one and a half target durations": {segments, 4, time.Second, 900 * ms, 0, 6 * time.Second},
		"a segment is open":               {segments, 4, time.Second, 0, 3 * time.Second, 3 * time.Second},
		"nothing is listed":               {segments, 0, 0, 0, time.Second, 2 * time.Second},
		"it should have been cut":         {segments, 2, 0, 0, 4 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(Options{Mode: tt.mode})
			r.Target(tt.target, map[string]time.Duration{"v": tt.part})
			if got := r.Lasts(tt.open, tt.segment); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
