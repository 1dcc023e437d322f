package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/fault"
)

// TestCrossOrigin sends what browsers send for pages of other origins, with the credentials that they add by
// themselves.
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
		"a form of another site": {
			http.MethodPost, streams, with("Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"),
			http.StatusForbidden,
		},
		"a form of a sandboxed frame": {
			http.MethodPost, streams, with("Sec-Fetch-Site", "cross-site", "Origin", "null"), http.StatusForbidden,
		},
		"another origin of the site": {
			http.MethodPost, streams, with("Sec-Fetch-Site", "same-site", "Origin", "https://blog.example.com"),
			http.StatusForbidden,
		},
		"an old browser": {
			http.MethodPost, streams + "/plain/reset-stream-key", evil, http.StatusForbidden,
		},
		"another port": {
			http.MethodPost, streams, with("Origin", "http://api.example.com:8443"), http.StatusForbidden,
		},
		"PUT":    {http.MethodPut, streams + "/plain/disable", evil, http.StatusForbidden},
		"PATCH":  {http.MethodPatch, streams + "/plain", evil, http.StatusForbidden},
		"DELETE": {http.MethodDelete, streams + "/plain", evil, http.StatusForbidden},
		"reading changes nothing": {
			http.MethodGet, streams, with("Sec-Fetch-Site", "cross-site"), http.StatusOK,
		},
		"a client that is no browser": {http.MethodPost, streams, nil, http.StatusCreated},
		"a page of this service": {
			http.MethodPost, streams, with("Sec-Fetch-Site", "same-origin", "Origin", "http://api.example.com"),
			http.StatusCreated,
		},
		"the same in an old browser": {
			http.MethodPost, streams, with("Origin", "http://api.example.com"), http.StatusCreated,
		},
		"the public URL behind a proxy": {
			http.MethodPost, streams, with("Origin", "https://video.example.com"), http.StatusCreated,
		},
		"what a person asked for itself": {
			http.MethodPost, streams, with("Sec-Fetch-Site", "none"), http.StatusCreated,
		},
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
			if w.Code == http.StatusForbidden &&
				(len(notes.calls) > 0 || !strings.Contains(w.Body.String(), textCrossOrigin) ||
					w.Header().Get(requestIDHeader) == "") {
				t.Errorf("refused with %s, and called %v", w.Body, notes.calls)
			}
		})
	}
}

// TestUnreadBody sends the beginning of a large body with wrong credentials and waits: the response comes at once and
// ends the connection. net/http would read up to 256 KiB first, for as long as they take to come.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{
		"no credentials":    "",
		"wrong credentials": "Authorization: Basic d3Jvbmc6d3Jvbmc=\r\n",
		"another site":      "Origin: https://evil.example\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			notes := &notebook{}
			srv := httptest.NewServer(New(notes.options()))
			t.Cleanup(srv.Close)
			var d net.Dialer
			c, err := d.DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			_ = c.SetDeadline(time.Now().Add(30 * time.Second))
			_, err = io.WriteString(c,
				"POST /video/v1/live-streams HTTP/1.1\r\nHost: x\r\n"+header+
					"Content-Type: application/json\r\nContent-Length: 200000\r\n\r\n{")
			if err != nil {
				t.Fatal(err)
			}
			response, err := io.ReadAll(c) // to the end of the connection
			if head, _, _ := strings.Cut(string(response), "\r\n\r\n"); err != nil ||
				!strings.Contains(head, "Connection: close") || !strings.Contains(head, " 40") {
				t.Errorf("%v: %s", err, response)
			}
		})
	}
}

// crowded is a service of which too many want a secret checked.
type crowded struct{ access.API }

func (crowded) Authenticate(context.Context, access.Credentials, time.Time) (access.Identity, error) {
	return access.Identity{}, fault.New(fault.TooMany, "too many secrets are being checked; try again in a second")
}

func TestTooManySecrets(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/video/v1/live-streams", nil)
	r.SetBasicAuth(tokenID, "wrong")
	w := httptest.NewRecorder()
	New(Options{Callers: Callers{Access: crowded{}}}).ServeHTTP(w, r)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" ||
		!strings.Contains(w.Body.String(), "too_many_requests") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}
