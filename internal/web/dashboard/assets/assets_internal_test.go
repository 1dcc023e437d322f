package assets

import (
	"testing"
	"time"
)

// TestLeft: how long something still takes is told no more exactly than anybody can know.
func TestLeft(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "", time.Second: "Less than a minute left", 59 * time.Second: "Less than a minute left",
		time.Minute: "About a minute left", 89 * time.Second: "About a minute left",
		90 * time.Second: "About 2 minutes left", 42 * time.Minute: "About 42 minutes left",
		89 * time.Minute: "About 89 minutes left", 90 * time.Minute: "About 2 hours left",
		35 * time.Hour: "About 35 hours left", 72 * time.Hour: "About 3 days left",
	} {
		if got := left(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
