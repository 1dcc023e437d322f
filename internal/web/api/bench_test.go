package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkCreate is what the API itself costs per request: authentication, decoding, checking, encoding; the services
// do nothing.
func BenchmarkCreate(b *testing.B) {
	notes := &notebook{}
	h := New(notes.options())
	const body = `{"playback_policies":["public"],"new_asset_settings":{"playback_policies":["public"]},"latency_mode":"low","passthrough":"p"}`
	for b.Loop() {
		notes.calls = notes.calls[:0]
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/video/v1/live-streams",
			strings.NewReader(body))
		r.SetBasicAuth(tokenID, tokenValue)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusCreated {
			b.Fatal(w.Body)
		}
	}
}
