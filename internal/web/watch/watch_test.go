package watch

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestStatus(t *testing.T) {
	t.Parallel()
	h := Handler()
	for name, tt := range map[string]struct {
		method, target string
		want           int
		location       string
	}{
		"page":             {"GET", "/watch/abcDEF0123-_", 200, ""},
		"page with token":  {"GET", "/watch/abc?token=x.y.z", 200, ""},
		"head":             {"HEAD", "/watch/abc", 200, ""},
		"post":             {"POST", "/watch/abc", 405, ""},
		"slash":            {"GET", "/watch/abc/?token=x", 301, "../abc?token=x"},
		"no id":            {"GET", "/watch/", 404, ""},
		"outside":          {"GET", "/other/abc", 404, ""},
		"odd id":           {"GET", "/watch/a%3Cscript%3E", 404, ""},
		"long id":          {"GET", "/watch/" + strings.Repeat("a", 129), 404, ""},
		"nested":           {"GET", "/watch/a/b", 404, ""},
		"script":           {"GET", "/watch/assets/watch.js", 200, ""},
		"unknown asset":    {"GET", "/watch/assets/other.js", 404, ""},
		"page is no asset": {"GET", "/watch/assets/watch.html", 404, ""},
		"folder":           {"GET", "/watch/assets/", 404, ""},
		"upwards":          {"GET", "/watch/assets/../../watch.go", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := get(t, h, tt.method, tt.target)
			b := res.Body.Bytes()
			if res.Code != tt.want || res.Header().Get("Location") != tt.location {
				t.Errorf("got %d to %q, want %d to %q", res.Code, res.Header().Get("Location"), tt.want, tt.location)
			}
			if tt.method == "HEAD" && len(b) != 0 {
				t.Errorf("HEAD has a body of %d bytes", len(b))
			}
		})
	}
}

// TestPageIsClosed holds the page to its word: no inline script, nothing from another origin.
func TestPageIsClosed(t *testing.T) {
	t.Parallel()
	res := get(t, Handler(), "GET", "/watch/abc")
	page := res.Body.String()
	csp := res.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self'"} {
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
	if scripts := regexp.MustCompile(`<script[^>]*>([^<]*)</script>`).FindAllStringSubmatch(page, -1); len(scripts) != 2 {
		t.Errorf("page has %d scripts, want 2", len(scripts))
	} else {
		for _, s := range scripts {
			if s[1] != "" {
				t.Errorf("inline script %q", s[1])
			}
		}
	}
}

// TestAddresses follows each address of the page: it exists and may be cached for ever.
func TestAddresses(t *testing.T) {
	t.Parallel()
	h := Handler()
	page := get(t, h, "GET", "/watch/abc").Body.Bytes()
	found := regexp.MustCompile(`"(assets/[^"]+)"`).FindAllSubmatch(page, -1)
	if len(found) != 3 {
		t.Fatalf("page names %d assets, want 3", len(found))
	}
	for _, m := range found {
		res := get(t, h, "GET", "/watch/"+string(m[1]))
		if b := res.Body.Bytes(); res.Code != 200 || len(b) == 0 {
			t.Errorf("%s: status %d, %d bytes", m[1], res.Code, len(b))
		}
		if c := res.Header().Get("Cache-Control"); !strings.Contains(c, "immutable") {
			t.Errorf("%s: Cache-Control %q", m[1], c)
		}
	}
	if c := get(t, h, "GET", "/watch/assets/watch.js?v=old").Header().Get("Cache-Control"); c != "no-cache" {
		t.Errorf("another version: Cache-Control %q", c)
	}
}

func TestCaching(t *testing.T) {
	t.Parallel()
	h := Handler()
	for _, coding := range []string{"", "gzip"} {
		first := get(t, h, "GET", "/watch/assets/hls.min.js", "Accept-Encoding", coding)
		etag := first.Header().Get("ETag")
		for _, have := range []string{etag, `"x", W/` + etag, "*"} {
			if res := get(t, h, "GET", "/watch/assets/hls.min.js", "Accept-Encoding", coding, "If-None-Match", have); res.Code != 304 {
				t.Errorf("%q If-None-Match %s: status %d, want 304", coding, have, res.Code)
			}
		}
		if res := get(t, h, "GET", "/watch/assets/hls.min.js", "Accept-Encoding", coding, "If-None-Match", `"x"`); res.Code != 200 {
			t.Errorf("%q other ETag: status %d, want 200", coding, res.Code)
		}
	}
}

func TestGzip(t *testing.T) {
	t.Parallel()
	h := Handler()
	plain := get(t, h, "GET", "/watch/assets/hls.min.js").Body.Bytes()
	for accept, want := range map[string]bool{
		"gzip": true, "gzip, br": true, "br, GZIP;q=0.5": true, "*": true, "": false, "br": false, "gzip;q=0": false, "gzip; q=0.0": false,
	} {
		res := get(t, h, "GET", "/watch/assets/hls.min.js", "Accept-Encoding", accept)
		b := res.Body.Bytes()
		if got := res.Header().Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("Accept-Encoding %q: gzip %t, want %t", accept, got, want)
			continue
		}
		if want {
			z, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if b, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(b, plain) {
			t.Errorf("Accept-Encoding %q: another body", accept)
		}
	}
}
