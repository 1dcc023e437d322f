package watch

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"strings"
	"testing"

	"millrace/internal/web/static/statictest"
)

func everybody(context.Context, string) string { return "" }

// TestFramers checks that the page says who may embed it.
func TestFramers(t *testing.T) {
	t.Parallel()
	h := Handler(func(_ context.Context, id string) string {
		return map[string]string{"closed": "'none'", "some": "https://a.example https://*.b.example"}[id]
	})
	for id, want := range map[string]string{
		"closed": "; frame-ancestors 'none'", "some": "; frame-ancestors https://a.example https://*.b.example", "open": "",
	} {
		got := statictest.Get(t, h, "GET", "/watch/"+id).Header().Get("Content-Security-Policy")
		if got != policy+want {
			t.Errorf("%s: %q", id, got)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	statictest.Status(t, Handler(everybody), map[string]statictest.Want{
		"page":             {Method: "GET", Target: "/watch/abcDEF0123-_", Status: 200},
		"page with token":  {Method: "GET", Target: "/watch/abc?token=x.y.z", Status: 200},
		"head":             {Method: "HEAD", Target: "/watch/abc", Status: 200},
		"post":             {Method: "POST", Target: "/watch/abc", Status: 405},
		"slash":            {Method: "GET", Target: "/watch/abc/?token=x", Status: 301, Location: "../abc?token=x"},
		"no id":            {Method: "GET", Target: "/watch/", Status: 404},
		"outside":          {Method: "GET", Target: "/other/abc", Status: 404},
		"odd id":           {Method: "GET", Target: "/watch/a%3Cscript%3E", Status: 404},
		"long id":          {Method: "GET", Target: "/watch/" + strings.Repeat("a", 129), Status: 404},
		"nested":           {Method: "GET", Target: "/watch/a/b", Status: 404},
		"script":           {Method: "GET", Target: "/watch/assets/watch.js", Status: 200},
		"unknown asset":    {Method: "GET", Target: "/watch/assets/other.js", Status: 404},
		"page is no asset": {Method: "GET", Target: "/watch/assets/watch.html", Status: 404},
		"folder":           {Method: "GET", Target: "/watch/assets/", Status: 404},
		"upwards":          {Method: "GET", Target: "/watch/assets/../../watch.go", Status: 404},
	})
}

func TestPageIsClosed(t *testing.T) {
	t.Parallel()
	statictest.Closed(t, Handler(everybody), "/watch/abc", 2, 3)
	if c := statictest.Get(t, Handler(everybody), "GET", "/watch/assets/watch.js?v=old").Header().Get("Cache-Control"); c != "no-cache" {
		t.Errorf("another version: Cache-Control %q", c)
	}
}

func TestCaching(t *testing.T) {
	t.Parallel()
	h := Handler(everybody)
	for _, coding := range []string{"", "gzip"} {
		first := statictest.Get(t, h, "GET", "/watch/assets/hls.min.js", "Accept-Encoding", coding)
		etag := first.Header().Get("ETag")
		for _, have := range []string{etag, `"x", W/` + etag, "*"} {
			if res := statictest.Get(t, h, "GET", "/watch/assets/hls.min.js", "Accept-Encoding", coding, "If-None-Match", have); res.Code != 304 {
				t.Errorf("%q If-None-Match %s: status %d, want 304", coding, have, res.Code)
			}
		}
		if res := statictest.Get(t, h, "GET", "/watch/assets/hls.min.js", "Accept-Encoding", coding, "If-None-Match", `"x"`); res.Code != 200 {
			t.Errorf("%q other ETag: status %d, want 200", coding, res.Code)
		}
	}
}

func TestGzip(t *testing.T) {
	t.Parallel()
	h := Handler(everybody)
	plain := statictest.Get(t, h, "GET", "/watch/assets/hls.min.js").Body.Bytes()
	for accept, want := range map[string]bool{
		"gzip": true, "gzip, br": true, "br, GZIP;q=0.5": true, "*": true, "": false, "br": false, "gzip;q=0": false, "gzip; q=0.0": false,
	} {
		res := statictest.Get(t, h, "GET", "/watch/assets/hls.min.js", "Accept-Encoding", accept)
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
