// Package playbacktest has what tests of several packages ask a playback.Handler: what viewers would.
package playbacktest

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

// Viewer asks over HTTP.
type Viewer struct {
	T       *testing.T
	Handler http.Handler
}

// New returns a viewer of what a source has.
func New(t *testing.T, from playback.Source) Viewer {
	t.Helper()
	return Viewer{t, playback.New(playback.Options{Source: from, Logger: slog.New(slog.DiscardHandler)})}
}

// Get gives the status and the body.
func (v Viewer) Get(target string) (int, string) {
	v.T.Helper()
	w := httptest.NewRecorder()
	v.Handler.ServeHTTP(w, httptest.NewRequestWithContext(v.T.Context(), http.MethodGet, target, nil))
	return w.Code, w.Body.String()
}

// Expect gives the body of what must have that status.
func (v Viewer) Expect(what string, status int, target string) string {
	v.T.Helper()
	code, body := v.Get(target)
	if code != status {
		v.T.Errorf("%s: GET %s returns %d, want %d: %s", what, target, code, status, body)
	}
	return body
}

// Playlists gives the addresses of the media playlists of a multivariant playlist, video first.
func (v Viewer) Playlists(p id.Playback) []string {
	v.T.Helper()
	var out []string
	for line := range strings.Lines(v.Expect("multivariant", http.StatusOK, "/"+string(p)+".m3u8")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append([]string{"/" + line}, out...)
		} else if _, uri, ok := strings.Cut(line, `URI="`); ok {
			out = append(out, "/"+strings.TrimSuffix(uri, `"`))
		}
	}
	return out
}

// URIs gives the addresses of everything that a media playlist lists, but for gaps.
func URIs(at, text string) []string {
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
