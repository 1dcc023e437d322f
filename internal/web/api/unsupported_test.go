package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// TestAbsentOperations: what clients can call and is not there says so, and why, to anyone who may call it.
func TestAbsentOperations(t *testing.T) {
	t.Parallel()
	h := New((&notebook{}).options())
	ids := regexp.MustCompile(`\{\w+\}`)
	ask := func(method, path, token string) (int, ErrorDetail) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(`{"anything":1}`))
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.SetBasicAuth(token, tokenValue)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var e Error
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, w.Body)
		}
		return w.Code, e.Detail
	}
	for _, a := range absentOperations() {
		path := ids.ReplaceAllString(a.path, "x1")
		if status, e := ask(a.method, path, tokenID); status != http.StatusBadRequest || e.Type != typeUnsupported ||
			len(e.Messages) != 1 || e.Messages[0] != a.why {
			t.Errorf("%s %s: %d %+v", a.method, a.path, status, e)
		}
		if status, _ := ask(a.method, path, ""); status != http.StatusUnauthorized {
			t.Errorf("%s %s without credentials: %d", a.method, a.path, status)
		}
		want := http.StatusBadRequest
		if a.method != http.MethodGet && strings.HasPrefix(a.path, "/video/") {
			want = http.StatusForbidden
		}
		if status, _ := ask(a.method, path, readerID); status != want {
			t.Errorf("%s %s with a token for reading: %d", a.method, a.path, status)
		}
	}
	for _, path := range []string{"/data/v1", "/data/v1/video-views", "/robots/v0/jobs"} {
		if status, e := ask(http.MethodGet, path, ""); status != http.StatusBadRequest || e.Type != typeUnsupported {
			t.Errorf("%s: %d %+v", path, status, e)
		}
	}
}
