package licence_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/licence"
	"millrace/internal/web/limit"
)

// TestLimit: an address that asks too often is told to wait, whatever its tokens, and others are not.
func TestLimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	h := licence.Handler(licence.Options{
		Resolve: func(context.Context, id.Playback) (playbackid.Object, error) {
			return playbackid.Object{}, fault.New(fault.NotFound, "the playback ID does not exist")
		},
		Limit: limit.New(1), Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler),
	})
	ask := func(method, from string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "/license/clearkey/x?token=y", strings.NewReader("{}"))
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for range 10 { // at once
		if w := ask(http.MethodPost, "192.0.2.1:1000"); w.Code != http.StatusNotFound {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	w := ask(http.MethodPost, "192.0.2.1:2000")
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" ||
		!strings.Contains(w.Body.String(), "too many licence requests") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("a player can't read %v", w.Header())
	}
	if w = ask(http.MethodOptions, "192.0.2.1:1000"); w.Code != http.StatusNoContent {
		t.Errorf("a preflight: %d", w.Code)
	}
	if w = ask(http.MethodPost, "192.0.2.2:1000"); w.Code != http.StatusNotFound {
		t.Errorf("another address: %d", w.Code)
	}
	now = now.Add(time.Second)
	if w = ask(http.MethodPost, "192.0.2.1:1000"); w.Code != http.StatusNotFound {
		t.Errorf("a second later: %d", w.Code)
	}
}
