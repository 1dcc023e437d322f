package playback_test

import (
	"strings"
	"testing"

	"millrace/internal/media/playback"
)

func TestOwns(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("aZ9", 14)
	for path, want := range map[string]bool{
		"/" + id: true, "/" + id + ".m3u8": true, "/" + id + "/m/v.m3u8": true, "/" + id + "/m/v/1.2.m4s": true,
		"/": false, "/video/v1/live-streams": false, "/watch/" + id: false, "/docs": false, "/openapi.json": false,
		"/healthz": false, "/readyz": false,
		"/" + id + "-": false, "/" + id + "%": false, "//" + id: false,
	} {
		if got := playback.Owns(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
