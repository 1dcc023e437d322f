package h2_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"millrace/internal/leaktest"
	"millrace/internal/unsent"
	"millrace/internal/web/express/h2"
	"millrace/internal/web/express/tlsrecord"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// serve serves HTTP/2 over TLS. What begins with /v/ is for players.
func serve(t *testing.T, o h2.Options, players, others http.Handler) *httptest.Server {
	t.Helper()
	if o.Takes == nil {
		o.Takes = func(path string) bool { return strings.HasPrefix(path, "/v/") }
	}
	o.Players = players
	own := h2.New(o)
	s := httptest.NewUnstartedServer(others)
	s.Listener = tlsrecord.Gather(s.Listener)
	s.EnableHTTP2 = true
	s.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": own.TLSNextProto}
	s.Config.ConnContext = unsent.ConnContext
	s.Config.RegisterOnShutdown(own.Shutdown)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// plain is net/http's server for the same.
func plain(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// ask sends a request and gives its response, read to the end.
func ask(
	ctx context.Context, t *testing.T, s *httptest.Server, method, path string, body io.Reader, fields ...string,
) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return resp, string(got), err
}
