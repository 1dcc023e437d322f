package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCrossOrigin sends what browsers send for pages of other origins, with the credentials that they add by themselves.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	const streams = "/video/v1/live-streams"
	evil := map[string]string{"Origin": "https://evil.example", "Content-Type": "application/x-www-form-urlencoded"}
	with := func(fields ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(fields); i += 2 {
			m[fields[i]] = fields[i+1]
		}
		return m
	}
	for name, tt := range map[string]struct {
		method, path string
		header       map[string]string
		status       int
	}{
		"a form of another site":         {http.MethodPost, streams, with("Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"), http.StatusForbidden},
		"a form of a sandboxed frame":    {http.MethodPost, streams, with("Sec-Fetch-Site", "cross-site", "Origin", "null"), http.StatusForbidden},
		"another origin of the site":     {http.MethodPost, streams, with("Sec-Fetch-Site", "same-site", "Origin", "https://blog.example.com"), http.StatusForbidden},
		"an old browser":                 {http.MethodPost, streams + "/plain/reset-stream-key", evil, http.StatusForbidden},
		"another port":                   {http.MethodPost, streams, with("Origin", "http://api.example.com:8443"), http.StatusForbidden},
		"PUT":                            {http.MethodPut, streams + "/plain/disable", evil, http.StatusForbidden},
		"PATCH":                          {http.MethodPatch, streams + "/plain", evil, http.StatusForbidden},
		"DELETE":                         {http.MethodDelete, streams + "/plain", evil, http.StatusForbidden},
		"reading changes nothing":        {http.MethodGet, streams, with("Sec-Fetch-Site", "cross-site"), http.StatusOK},
		"a client that is no browser":    {http.MethodPost, streams, nil, http.StatusCreated},
		"a page of this service":         {http.MethodPost, streams, with("Sec-Fetch-Site", "same-origin", "Origin", "http://api.example.com"), http.StatusCreated},
		"the same in an old browser":     {http.MethodPost, streams, with("Origin", "http://api.example.com"), http.StatusCreated},
		"the public URL behind a proxy":  {http.MethodPost, streams, with("Origin", "https://video.example.com"), http.StatusCreated},
		"what a person asked for itself": {http.MethodPost, streams, with("Sec-Fetch-Site", "none"), http.StatusCreated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes := &notebook{}
			o := notes.options()
			o.PublicURL = "https://video.example.com"
			r := httptest.NewRequestWithContext(t.Context(), tt.method, "http://api.example.com"+tt.path, nil)
			r.SetBasicAuth(tokenID, tokenValue)
			for k, v := range tt.header {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			New(o).ServeHTTP(w, r)
			if w.Code != tt.status {
				t.Errorf("status %d, want %d: %s", w.Code, tt.status, w.Body)
			}
			if w.Code == http.StatusForbidden && (len(notes.calls) > 0 || !strings.Contains(w.Body.String(), textCrossOrigin) || w.Header().Get(requestIDHeader) == "") {
				t.Errorf("refused with %s, and called %v", w.Body, notes.calls)
			}
		})
	}
}
