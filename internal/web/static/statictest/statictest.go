// Package statictest contains what the tests of the service's pages have in common. It must never know what a page is
// for; only tests import it. No goroutines.
package statictest

import (
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

// Get asks a handler; header are pairs.
func Get(t testing.TB, h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Want is the response to a request, and where it is sent on to.
type Want struct {
	Method, Target string
	Status         int
	Location       string
}

// Status asks each of a table.
func Status(t *testing.T, h http.Handler, table map[string]Want) {
	t.Helper()
	for name, tt := range table {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := Get(t, h, tt.Method, tt.Target)
			if w.Code != tt.Status || w.Header().Get("Location") != tt.Location {
				t.Errorf("got %d to %q, want %d to %q", w.Code, w.Header().Get("Location"), tt.Status, tt.Location)
			}
			if tt.Method == http.MethodHead && w.Body.Len() != 0 {
				t.Errorf("HEAD has a body of %d bytes", w.Body.Len())
			}
		})
	}
}

// Closed holds a page to its word: so many scripts, none of them inline, nothing from another origin, and every one of
// so many addresses that it names is there and may be cached for ever.
func Closed(t *testing.T, h http.Handler, target string, scripts, addresses int, policy ...string) {
	t.Helper()
	res := Get(t, h, http.MethodGet, target)
	page, csp := res.Body.String(), res.Header().Get("Content-Security-Policy")
	for _, want := range append(policy, "default-src 'none'", "script-src 'self';", "connect-src 'self'") {
		if !strings.Contains(csp, want) {
			t.Errorf("policy %q lacks %q", csp, want)
		}
	}
	if strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q allows unsafe things", csp)
	}
	for _, bad := range []string{"http:", "https:", "//", " style=", " onclick=", "<style"} {
		if strings.Contains(page, bad) {
			t.Errorf("page contains %q", bad)
		}
	}
	found := regexp.MustCompile(`<script[^>]*>([^<]*)</script>`).FindAllStringSubmatch(page, -1)
	if len(found) != scripts {
		t.Errorf("page has %d scripts, want %d", len(found), scripts)
	}
	for _, m := range found {
		if m[1] != "" {
			t.Errorf("inline script %q", m[1])
		}
	}
	named := regexp.MustCompile(`"((?:\.\./\w+/)?assets/[^"]+\?v=[^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(named) != addresses {
		t.Fatalf("page names %d assets, want %d", len(named), addresses)
	}
	folder := path.Dir(target) + "/"
	if strings.HasSuffix(target, "/") {
		folder = target
	}
	for _, m := range named {
		res := Get(t, h, http.MethodGet, folder+m[1])
		if res.Code != http.StatusOK || res.Body.Len() == 0 ||
			!strings.Contains(res.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: status %d, %d bytes, Cache-Control %q", m[1], res.Code, res.Body.Len(),
				res.Header().Get("Cache-Control"))
		}
	}
}
