package publish

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	h := Handler()
	for name, tt := range map[string]struct {
		method, target string
		want           int
		location       string
	}{
		"page":          {"GET", "/publish/", 200, ""},
		"head":          {"HEAD", "/publish/", 200, ""},
		"without slash": {"GET", "/publish", 301, "publish/"},
		"post":          {"POST", "/publish/", 405, ""},
		"script":        {"GET", "/publish/assets/publish.js", 200, ""},
		"style":         {"GET", "/publish/assets/publish.css", 200, ""},
		"no asset":      {"GET", "/publish/assets/publish.html", 404, ""},
		"upwards":       {"GET", "/publish/assets/../publish.go", 404, ""},
		"deeper":        {"GET", "/publish/key", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tt.method, tt.target, nil))
			if w.Code != tt.want || w.Header().Get("Location") != tt.location {
				t.Errorf("got %d to %q, want %d to %q", w.Code, w.Header().Get("Location"), tt.want, tt.location)
			}
		})
	}
}

// TestPageIsClosed holds the page to its word: no inline script, nothing from another origin, and every address that it names is there.
func TestPageIsClosed(t *testing.T) {
	t.Parallel()
	h := Handler()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/publish/", nil))
	page, csp := w.Body.String(), w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("policy %q lacks %q", csp, want)
		}
	}
	for _, bad := range []string{"http:", "https:", "//", " style=", " onclick=", "<style"} {
		if strings.Contains(page, bad) {
			t.Errorf("page contains %q", bad)
		}
	}
	for _, m := range regexp.MustCompile(`<script[^>]*>([^<]*)</script>`).FindAllStringSubmatch(page, -1) {
		if m[1] != "" {
			t.Errorf("inline script %q", m[1])
		}
	}
	named := regexp.MustCompile(`"(assets/[^"]+\?v=[^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(named) != 2 {
		t.Fatalf("page names %d assets, want 2", len(named))
	}
	for _, m := range named {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/publish/"+m[1], nil))
		if w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d, Cache-Control %q", m[1], w.Code, w.Header().Get("Cache-Control"))
		}
	}
}
