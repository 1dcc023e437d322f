package api

import (
	"strings"
	"testing"
)

// TestNearestPath: of a path with one misspelled word, the response names the one that was meant, with its IDs.
func TestNearestPath(t *testing.T) {
	t.Parallel()
	s := newServer(Options{})
	for path, want := range map[string]string{
		"/video/v1/livestreams":                 "/video/v1/live-streams",
		"/video/v1/live_streams/abc":            "/video/v1/live-streams/abc",
		"/video/v1/asset/abc/playback-ids":      "/video/v1/assets/abc/playback-ids",
		"/video/v1/assets/abc/playback_ids":     "/video/v1/assets/abc/playback-ids",
		"/vidoe/v1/assets":                      "/video/v1/assets",
		"/video/v1/assets/":                     "/video/v1/assets",
		"/video/v1/asset/":                      "/video/v1/assets",
		"/video/v2/assets":                      "/video/v1/assets",
		"/video/v1/assets/abc/def":              "",
		"/video/v1/nonsense":                    "",
		"/":                                     "",
		strings.Repeat("/video", 100):           "",
		"/video/v1/" + strings.Repeat("a", 999): "",
	} {
		if got := s.nearestPath(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
