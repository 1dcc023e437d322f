package broadcast_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"millrace/internal/id"
	"millrace/internal/media/playback"
)

// viewer asks a node over HTTP.
type viewer struct {
	t *testing.T
	h http.Handler
}

func (n *node) viewer() viewer {
	return viewer{n.w.t, playback.New(playback.Options{Source: n.playback, Logger: slog.New(slog.DiscardHandler)})}
}

func (v viewer) get(target string) (int, string) {
	v.t.Helper()
	w := httptest.NewRecorder()
	v.h.ServeHTTP(w, httptest.NewRequestWithContext(v.t.Context(), http.MethodGet, target, nil))
	return w.Code, w.Body.String()
}

func (v viewer) expect(what string, status int, target string) string {
	v.t.Helper()
	code, body := v.get(target)
	if code != status {
		v.t.Errorf("%s: GET %s returns %d, want %d: %s", what, target, code, status, body)
	}
	return body
}

// playlists gives the addresses of the media playlists of a multivariant playlist, video first.
func (v viewer) playlists(p id.Playback) []string {
	v.t.Helper()
	var out []string
	for line := range strings.Lines(v.expect("multivariant", http.StatusOK, "/"+string(p)+".m3u8")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append([]string{"/" + line}, out...)
		} else if _, uri, ok := strings.Cut(line, `URI="`); ok {
			out = append(out, "/"+strings.TrimSuffix(uri, `"`))
		}
	}
	return out
}

// uris gives the addresses of everything that a media playlist lists, but for gaps.
func uris(at, text string) []string {
	var out []string
	gap := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		gap = gap || line == "#EXT-X-GAP"
		if _, uri, ok := strings.Cut(line, `URI="`); ok && strings.HasPrefix(line, "#EXT-X-MAP") {
			line, _, _ = strings.Cut(uri, `"`)
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !gap {
			out = append(out, path.Join(path.Dir(at), line))
		}
		gap = false
	}
	return out
}

func (w *world) playbackID(a id.Asset) id.Playback { return w.asset(a).PlaybackIDs[0].ID }
