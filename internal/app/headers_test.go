package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millrace/internal/app/cli"
	"millrace/internal/fault"
	"millrace/internal/media/playback"
	"millrace/internal/web/api"
	"millrace/internal/web/header"
	"millrace/internal/web/watch"
)

// nobody has nothing to play.
type nobody struct{}

func (nobody) Open(context.Context, playback.Request) (playback.Presentation, playback.Permit, error) {
	return nil, playback.Permit{}, fault.New(fault.NotFound, "there is no such playback ID")
}

func (nobody) Master(context.Context, string, string, string) (playback.File, error) {
	return playback.File{}, fault.New(fault.NotFound, "there is no such asset")
}

// TestHeaders asks for every page and endpoint: which may be framed, by whom, which other sites may read, and what a
// browser may guess.
func TestHeaders(t *testing.T) {
	t.Parallel()
	page := watch.Handler(watch.Options{Framers: func(_ context.Context, id string) (string, error) {
		return map[string]string{"closed": "'none'", "some": "https://a.example"}[id], nil
	}})
	empty := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	h := router(api.New(api.Options{}), playback.New(playback.Options{Source: nobody{}}), empty, empty, empty, empty,
		empty, page, nil)
	secure := header.Strict(time.Hour, h)
	const none = "'none'"
	for _, tt := range []struct {
		method, path string
		ancestors    string // of the policy; "": it has none
		media        bool   // every site may read it
	}{
		{"GET", "/docs", none, false},
		{"GET", "/docs/", none, false},
		{"POST", "/docs/", none, false},
		{"GET", "/docs/obs.md", none, false},
		{"GET", "/docs/reference", none, false},
		{"GET", "/docs/reference.js", none, false},
		{"GET", "/docs/nothing", none, false},
		{"GET", "/openapi.json", none, false},
		{"GET", "/", none, false},
		{"GET", "/healthz", none, false},
		{"GET", "/readyz", none, false},
		{"GET", "/counts?token=x", none, false}, // opens itself to every site, here it is a stand-in
		{"GET", "/publish/", none, false},
		{"GET", "/publish/nothing", none, false},
		{"GET", "/watch/open?token=x", "", false},
		{"GET", "/watch/closed?token=x", none, false},
		{"GET", "/watch/some", "https://a.example", false},
		{"GET", "/watch/assets/nothing.js", none, false},
		{"POST", "/watch/open", none, false},
		{"GET", "/watch/", none, false},
		{"GET", "/embed/open?token=x", "*", false},
		{"GET", "/embed/closed?token=x", none, false},
		{"GET", "/embed/some", "https://a.example", false},
		{"POST", "/embed/open", none, false},
		{"GET", "/embed/", none, false},
		{"GET", "/embed", none, false},
		{"GET", "/video/v1/assets", none, false},
		{"OPTIONS", "/video/v1/assets", none, false},
		{"POST", "/system/v1/access-tokens", none, false},
		{"GET", "/system/v1/nothing", none, false},
		{"GET", "/video/../v1", none, false},
		{"GET", "/data/v1/x", none, false},
		{"GET", "/" + strings.Repeat("x", 24) + ".m3u8", "", true},
		{"GET", "/" + strings.Repeat("x", 24) + "/highest.mp4", "", true},
		{"OPTIONS", "/" + strings.Repeat("x", 24) + "/thumbnail.jpg", "", true},
		{"GET", "/nothing", "", true},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tt.method, "http://video.example.com"+tt.path, nil)
		r.Header.Set("Origin", "https://other.example")
		w, overTLS := httptest.NewRecorder(), httptest.NewRecorder()
		h.ServeHTTP(w, r)
		secure.ServeHTTP(overTLS, r)
		head := w.Header()
		_, ancestors, _ := strings.Cut(head.Get("Content-Security-Policy"), "frame-ancestors ")
		if ancestors != tt.ancestors || head.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: headers %v", tt.method, tt.path, head)
		}
		if !tt.media &&
			(!strings.HasPrefix(head.Get("Content-Security-Policy"), "default-src 'none'") ||
				head.Get("Referrer-Policy") != "no-referrer") {
			t.Errorf("%s %s: headers %v", tt.method, tt.path, head)
		}
		if open := head.Get("Access-Control-Allow-Origin") == "*"; open != tt.media {
			t.Errorf("%s %s: other sites may read it: %t", tt.method, tt.path, open)
		}
		if exposed := head.Get("Access-Control-Expose-Headers"); tt.media &&
			(!strings.Contains(exposed, "Age") || !strings.Contains(exposed, "Content-Range")) {
			t.Errorf("%s %s: exposed are %q", tt.method, tt.path, exposed)
		}
		if head.Get("Strict-Transport-Security") != "" ||
			overTLS.Header().Get("Strict-Transport-Security") != "max-age=3600" {
			t.Errorf("%s %s: HSTS %q, %q over TLS", tt.method, tt.path, head.Get("Strict-Transport-Security"),
				overTLS.Header().Get("Strict-Transport-Security"))
		}
	}
}

// TestVersionHeader: who looks whether the service is there learns which version it has.
func TestVersionHeader(t *testing.T) {
	t.Parallel()
	empty := http.NotFoundHandler()
	streams := playback.New(playback.Options{Source: nobody{}})
	h := router(api.New(api.Options{}), streams, empty, empty, &readiness{}, empty, empty, empty, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://video.example.com/healthz", nil))
	if got := w.Header().Get("Millrace-Version"); w.Code != http.StatusNoContent || got != cli.Version() {
		t.Errorf("status %d, version %q, want %q", w.Code, got, cli.Version())
	}
}
