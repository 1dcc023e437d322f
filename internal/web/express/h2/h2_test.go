package h2_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/web/express/h2"
)

// echo says what it is asked for in each way in which a handler can.
func echo(w http.ResponseWriter, r *http.Request) {
	what, arg, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/v"), "/"), "/")
	h := w.Header()
	switch what {
	case "request":
		var lines []string
		for name, values := range r.Header {
			lines = append(lines, fmt.Sprintf("%s: %q", name, values))
		}
		slices.Sort(lines)
		body, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprintln(w, r.Method, r.URL, r.RequestURI, r.Proto, r.ContentLength, r.Trailer, r.TLS != nil, lines,
			len(body), err)
	case "nothing":
	case "status":
		var status int
		_, _ = fmt.Sscan(arg, &status)
		h.Set("X-Why", "because")
		w.WriteHeader(status)
	case "short":
		h.Set("Content-Type", "text/x-thing")
		_, _ = io.WriteString(w, "short")
	case "html":
		_, _ = io.WriteString(w, "<html><p>it is")
		_, _ = io.WriteString(w, " html")
	case "large":
		for range 100 {
			_, _ = w.Write(bytes.Repeat([]byte("0123456789"), 1000))
		}
	case "announced":
		h.Set("Content-Length", "50000")
		_, _ = w.Write(bytes.Repeat([]byte("01234"), 10000))
	case "unmodified":
		h.Set("Etag", `"x"`)
		h.Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusNotModified)
		_, _ = io.WriteString(w, "no body")
	case "late":
		h.Set("X-Early", "1")
		w.WriteHeader(http.StatusAccepted)
		h.Set("X-Late", "1")
		_, _ = io.WriteString(w, "x")
	case "odd":
		h["X-Odd"] = []string{"a", "b", "c\r\nd"}
		h["Transfer-Encoding"] = []string{"chunked"}
		h["bad name"] = []string{"x"}
		h["x-lower"] = []string{"yes"}
		_, _ = io.WriteString(w, "odd")
	case "gzip":
		h.Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "not really")
	case "flush":
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "second")
	case "file":
		http.ServeContent(w, r, "x.bin", modified, bytes.NewReader(bytes.Repeat([]byte("abcdefgh"), 9000)))
	case "early":
		h.Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "early")
	case "panic":
		panic(http.ErrAbortHandler)
	case "broken":
		h.Set("Content-Length", "100000")
		_, _ = w.Write(make([]byte, 50000))
		panic(http.ErrAbortHandler)
	}
}

// TestSameAsNetHTTP: the same requests have the same responses over both, whichever way they go here.
func TestSameAsNetHTTP(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(echo)
	own, std := serve(t, h2.Options{}, h, h), plain(t, h)
	type request struct {
		method, path, body string
		fields             []string
	}
	all := []request{
		{"POST", "/request", "a body", nil},
		{"POST", "/request", strings.Repeat("long ", 100000), []string{"Content-Type", "text/plain"}},
		{"PUT", "/request", "a body", []string{"Expect", "100-continue"}},
		{"PATCH", "/v/request", "a body", []string{"Cookie", "a=b", "Cookie", "c=d"}},
		{"DELETE", "/v/request", "", nil},
		{"OPTIONS", "/v/request", "", []string{"Origin", "https://x"}},
		{"GET", "/v/request?a=b&c=%20d", "", []string{"Range", "bytes=1-2", "X-A", "b", "X-A", "c"}},
		{"GET", "/v/request//x", "", nil},
		{"GET", "/v/request/%41%2f", "", nil},
		{"GET", "/v/request/..", "", nil},
		{"GET", "/v/file", "", []string{"Range", "bytes=5-9"}},
		{"GET", "/v/file", "", []string{"Range", "bytes=5-9,20-25"}},
		{"GET", "/v/file", "", []string{"Range", "bytes=999999-"}},
		{"GET", "/v/file", "", []string{"If-Modified-Since", modified.UTC().Format(http.TimeFormat)}},
	}
	for _, what := range []string{
		"request", "nothing", "status/200", "status/204", "status/304", "status/404", "status/599", "short", "html",
		"large", "announced", "unmodified", "late", "odd", "gzip", "flush", "file", "early", "panic", "broken",
	} {
		for _, way := range []string{"/v/", "/"} {
			all = append(all, request{"GET", way + what, "", nil}, request{"HEAD", way + what, "", nil})
		}
	}
	for _, r := range all {
		if r.path == "/v/late" { // players' handlers leave their headers alone
			continue
		}
		send := func(s *httptest.Server) string {
			var body io.Reader
			if r.body != "" {
				body = strings.NewReader(r.body)
			}
			resp, got, err := ask(t.Context(), t, s, r.method, r.path, body, r.fields...)
			if err != nil && resp == nil {
				return "error"
			}
			resp.Header.Del("Date")
			if typ := resp.Header.Get("Content-Type"); strings.HasPrefix(typ, "multipart/byteranges") {
				resp.Header.Del("Content-Type") // the boundary is chance
				got = ""
			}
			return fmt.Sprint(resp.Status, resp.Proto, resp.ContentLength, resp.Header, got, err != nil)
		}
		if here, there := send(own), send(std); here != there {
			t.Errorf("%s %s %v:\n%.600s\nnet/http:\n%.600s", r.method, r.path, r.fields, here, there)
		}
	}
}

// modified is when what is served was.
var modified = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
