package fetch_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/fetch"
	"millrace/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// newClient allows 127.0.0.1, but no other loopback address, and hardly waits between attempts.
func newClient(t *testing.T, change ...func(*fetch.Options)) *fetch.Client {
	t.Helper()
	o := fetch.Options{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Retry: fetch.Retry{Tries: 4, First: time.Millisecond, Max: 2 * time.Millisecond},
	}
	for _, f := range change {
		f(&o)
	}
	c := fetch.New(o)
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func content(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never fails
	return b
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ url, msg string }{
		{"http://example.com", ""},
		{"https://example.com:8443/a?b=c#d", ""},
		{"HTTPS://EXAMPLE.COM/", ""},
		{"http://[2606:4700::1]:80/", ""},
		{"", "http:// or https://"},
		{"example.com/x.mp4", "http:// or https://"},
		{"file:///etc/passwd", "http:// or https://"},
		{"ftp://example.com/x", "http:// or https://"},
		{"gopher://127.0.0.1:6379/_INFO", "http:// or https://"},
		{"//example.com/x", "http:// or https://"},
		{"http:example.com", "no host"},
		{"http://", "no host"},
		{"http://:80/", "no host"},
		{"http:///path", "no host"},
		{"http://example.com:0/", "port 0"},
		{"http://example.com:00/", "port 0"},
		{"http://example.com:65535/", ""},
		{"http://example.com:65536/", "largest is 65535"},
		{"http://example.com:99999/", "largest is 65535"},
		{"http://user:sesame@example.com/", "user name or password"},
		{"http://example.com@10.0.0.1/", "user name or password"},
		{"http://@example.com/", "user name or password"},
		{"http://exa mple.com/", "can't be read"},
		{"http://example.com:port/", "can't be read"},
		{"http://[::1/", "can't be read"},
		{"http://example.com/\x00", "can't be read"},
		{"http://example.com/%zz?sesame", "can't be read"},
		{"http://example.com/" + strings.Repeat("a", 9000), "more than 8192 bytes"},
	} {
		err := fetch.CheckURL(tt.url)
		if tt.msg == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.url, err)
			}
			continue
		}
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.msg) ||
			strings.Contains(err.Error(), "sesame") {
			t.Errorf("%.60s: %v, want %q", tt.url, err, tt.msg)
		}
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	var got *http.Request
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Content-Type", "text/vtt")
		w.Header().Set("ETag", `"1"`)
		_, _ = io.WriteString(w, "WEBVTT\n")
	})
	data, info, err := newClient(t, func(o *fetch.Options) { o.UserAgent = "millrace/1" }).Get(t.Context(),
		url+"/a.vtt", 7)
	if err != nil || string(data) != "WEBVTT\n" {
		t.Fatalf("%q, %v", data, err)
	}
	if want := (fetch.Info{Size: 7, ContentType: "text/vtt", ETag: `"1"`}); info != want {
		t.Errorf("info %+v, want %+v", info, want)
	}
	if got.UserAgent() != "millrace/1" || got.Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("request header %v", got.Header)
	}
	if _, _, err := newClient(t).Get(t.Context(), url+"/a.vtt", 6); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("six bytes allowed: %v", err)
	}
}

func TestGetEndless(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1000)); err != nil {
				return
			}
		}
	})
	if _, _, err := newClient(t).Get(t.Context(), url, 5000); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("endless body: %v, want too large", err)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		header map[string]string
		kind   fault.Kind
		msg    string
		tries  int
	}{
		{status: 204, kind: fault.Invalid, msg: "204 No Content", tries: 1},
		{status: 206, kind: fault.Invalid, msg: "206 Partial Content", tries: 1},
		{status: 301, kind: fault.Invalid, msg: "301 Moved Permanently", tries: 1}, // without Location
		{status: 304, kind: fault.Invalid, msg: "304", tries: 1},
		{status: 401, kind: fault.Invalid, msg: "401 Unauthorized", tries: 1},
		{status: 403, kind: fault.Invalid, msg: "403 Forbidden", tries: 1},
		{status: 404, kind: fault.Invalid, msg: "the server responded with 404 Not Found", tries: 1},
		{status: 416, kind: fault.Invalid, msg: "416", tries: 1},
		{status: 408, kind: fault.Unavailable, msg: "408", tries: 4},
		{status: 429, header: map[string]string{"Retry-After": "60"}, kind: fault.Unavailable, msg: "429", tries: 4},
		{status: 500, kind: fault.Unavailable, msg: "500 Internal Server Error", tries: 4},
		{status: 503, kind: fault.Unavailable, msg: "503", tries: 4},
		{status: 599, kind: fault.Unavailable, msg: "responded with 599", tries: 4},
		{
			status: 200, header: map[string]string{"Content-Encoding": "gzip"}, kind: fault.Invalid,
			msg: `sent as "gzip"`, tries: 1,
		},
	} {
		t.Run(fmt.Sprint(tt.status), func(t *testing.T) {
			t.Parallel()
			tries := 0
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				tries++
				for name, value := range tt.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(tt.status)
			})
			_, _, err := newClient(t).Get(t.Context(), url+"/v?token=sesame", 100)
			if fault.KindOf(err) != tt.kind || !strings.Contains(strings.Join(fault.Messages(err), " "), tt.msg) ||
				tries != tt.tries {
				t.Errorf("get: %v of kind %d after %d tries", err, fault.KindOf(err), tries)
			}
			path := filepath.Join(t.TempDir(), "f")
			_, err = newClient(t).Download(t.Context(), url+"/v?token=sesame", path, fetch.Limits{MaxBytes: 100}, nil)
			if fault.KindOf(err) != tt.kind || tries != 2*tt.tries || strings.Contains(err.Error(), "sesame") ||
				!fault.Outside(err) {
				t.Errorf("download: %v of kind %d after %d tries", err, fault.KindOf(err), tries)
			}
			left, err := os.ReadDir(filepath.Dir(path))
			if err != nil || tt.kind == fault.Invalid && len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	var referer []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		referer = append(referer, r.Header.Get("Referer"))
		switch r.URL.Path {
		case "/to":
			http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/five":
			n := len(r.URL.Query().Get("n"))
			if n < 5 {
				http.Redirect(w, r, "/five?n="+strings.Repeat("x", n+1), http.StatusMovedPermanently)
			}
			_, _ = io.WriteString(w, "end")
		}
	})
	c := newClient(t)
	data, _, err := c.Get(t.Context(), url+"/five?token=sesame", 100)
	if err != nil || string(data) != "end" {
		t.Errorf("five redirects: %q, %v", data, err)
	}
	if s := strings.Join(referer, ""); s != "" {
		t.Errorf("referer %q", s)
	}
	for target, want := range map[string]string{
		url + "/loop":              "redirected more than 5 times",
		"file:///etc/passwd":       "another that is not allowed",
		"ftp://127.0.0.1/x":        "another that is not allowed",
		"gopher://127.0.0.1:6379/": "another that is not allowed",
		"http://u:p@127.0.0.1/":    "another that is not allowed",
		"http://127.0.0.1:0/":      "port 0",
		"http://127.0.0.2/":        "address 127.0.0.2 is not allowed: loopback",
		"http://10.0.0.1/": "address 10.0.0.1 is not allowed: private network; add it with " +
			"--fetch-allow",
		"http://169.254.169.254/latest/meta": "cloud metadata",
		"http://[::1]/":                      "loopback",
		"http://[::ffff:169.254.169.254]/":   "cloud metadata",
		"http://0/":                          "",
	} {
		_, _, err := c.Get(t.Context(), url+"/to?u="+strings.ReplaceAll(target, "&", "%26"), 100)
		if err == nil ||
			want != "" &&
				(fault.KindOf(err) != fault.Invalid ||
					!strings.Contains(strings.Join(fault.Messages(err), " "), want)) {
			t.Errorf("redirect to %s: %v, want %q", target, err, want)
		}
	}
	none := newClient(t, func(o *fetch.Options) { o.MaxRedirects = -1 })
	if _, _, err := none.Get(t.Context(), url+"/five", 100); fault.KindOf(err) != fault.Invalid {
		t.Errorf("no redirects allowed: %v", err)
	}
}

func TestProxyOfEnvironmentIsIgnored(t *testing.T) {
	// Not parallel: it sets the environment.
	proxied := false
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { proxied = true })
	t.Setenv("HTTP_PROXY", proxy)
	t.Setenv("http_proxy", proxy)
	_, _, err := newClient(t).Get(t.Context(), "http://192.0.2.1/", 100)
	if proxied || fault.KindOf(err) != fault.Invalid {
		t.Errorf("asked the proxy: %t; %v", proxied, err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	if _, _, err := newClient(t).Get(t.Context(), srv.URL, 100); fault.KindOf(err) != fault.Invalid ||
		!strings.Contains(err.Error(), "not trusted") {
		t.Errorf("self-signed: %v", err)
	}
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	url := strings.Replace(plain, "http:", "https:", 1)
	if _, _, err := newClient(t).Get(t.Context(), url, 100); fault.KindOf(err) != fault.Invalid ||
		!strings.Contains(err.Error(), "TLS") {
		t.Errorf("plain server: %v", err)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:1" // a port that was free a moment ago may be another test's by now
	var log bytes.Buffer
	c := newClient(t, func(o *fetch.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	if _, _, err := c.Get(t.Context(), url+"/?token=sesame", 100); fault.KindOf(err) != fault.Unavailable ||
		!fault.Outside(err) || !strings.Contains(err.Error(), "refuses connections") {
		t.Errorf("nobody listens: %v", err)
	}
	if n := strings.Count(log.String(), "trying again"); n != 3 || strings.Contains(log.String(), "sesame") {
		t.Errorf("logged:\n%s", &log)
	}
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, _, err := newClient(t).Get(ctx, url, 100)
	if err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) || fault.KindOf(err) != fault.Internal {
		t.Errorf("cancelled: %v", err)
	}
}

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{
		"bytes 0-9/10", "bytes 5-9/*", "bytes */10", "bytes 9-5/10", "bytes 0-10/10", "", "bytes -/", "bytes 1-2",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		start, total, ok := fetch.ContentRange(s)
		if ok && (start < -1 || total < -1 || total >= 0 && start >= total && start > 0) {
			t.Errorf("%q: start %d, total %d", s, start, total)
		}
	})
}
