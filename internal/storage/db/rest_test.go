package db

import (
	"testing"
	"time"
)

// TestRest is none for as long as a job may just have been there; then it grows, up to ten minutes.
func TestRest(t *testing.T) {
	t.Parallel()
	for deaths, want := range map[int]time.Duration{
		0: 0, 1: 0, 10: 0, 11: 2 * time.Second, 12: 4 * time.Second, 15: 32 * time.Second, 19: 512 * time.Second,
		20: 10 * time.Minute, 1_000_000: 10 * time.Minute,
	} {
		if got := rest(deaths); got != want {
			t.Errorf("after %d deaths %v, want %v", deaths, got, want)
		}
	}
}
