package spelling

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"playback_policies", "playback_policy", "passthrough", "test"}
	for name, want := range map[string]string{
		"playback_polices": "playback_policies", "playback-policy": "playback_policy", "Passthrough": "passthrough",
		"passthruogh": "passthrough",
		"tset":        "test", "": "", "directives": "", "x": "", strings.Repeat("test", 100): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%.20q: %q, want %q", name, got, want)
		}
	}
	if got := Nearest("x", nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}
