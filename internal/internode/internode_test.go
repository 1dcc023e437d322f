package internode_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/id"
	"millrace/internal/internode"
	"millrace/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// clock is one that a test can set.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func key(b byte) (k internode.Key) {
	for i := range k {
		k[i] = b
	}
	return k
}

// locked is a log that may be read while it is written.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// node is a Server that listens, and a Client.
type node struct {
	*internode.Server
	client *internode.Client
	clock  clock
	self   internode.Greeting
	url    string
	log    locked
	conns  atomic.Int64 // that were opened to it
}

func (n *node) peer() internode.Peer { return internode.Peer{Node: n.self.Node, URL: n.url} }

func start(t *testing.T, name id.Node, k internode.Key, speaks internode.Range) *node {
	t.Helper()
	n := &node{self: internode.Greeting{Node: name, Run: "run of " + string(name), Version: "1.2.3", Speaks: speaks}}
	log := slog.New(slog.NewTextHandler(&n.log, nil))
	n.Server = internode.NewServer(internode.ServerOptions{Key: k, Self: n.self, Now: n.clock.now, Logger: log})
	n.client = internode.NewClient(internode.ClientOptions{Key: k, Self: n.self, Now: n.clock.now, Logger: log})
	t.Cleanup(n.client.Close)
	n.listen(t)
	return n
}

// listen serves the node until the test ends.
func (n *node) listen(t *testing.T) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.url = "http://" + ln.Addr().String()
	server := n.HTTP(nil)
	server.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			n.conns.Add(1)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(ln)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
}

func get(t *testing.T, target string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t *testing.T, res *http.Response) string {
	t.Helper()
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestNodesSpeak(t *testing.T) {
	t.Parallel()
	a, b := start(t, "a", key(1), internode.Spoken()), start(t, "b", key(1), internode.Spoken())
	b.Handle("GET /part/{n}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := string(internode.FromNode(r.Context()))
		_, _ = io.WriteString(w, r.Proto+" "+r.PathValue("n")+" "+r.URL.RawQuery+" of "+from)
	}))
	b.Handle("POST /told", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	g, err := a.client.Hello(t.Context(), b.peer())
	if err != nil || g != b.self {
		t.Errorf("hello: %+v, %v", g, err)
	}
	for range 20 {
		part, failed := a.client.Do(t.Context(), b.peer(), get(t, "/part/4?x=1&y=%2F"))
		if failed != nil {
			t.Fatal(failed)
		}
		if got := text(t, part); got != "HTTP/2.0 4 x=1&y=%2F of a" {
			t.Errorf("got %q", got)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/told", strings.NewReader("news"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := a.client.Do(t.Context(), b.peer(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, res); got != "news" {
		t.Errorf("got %q", got)
	}
	if got := b.conns.Load(); got != 1 {
		t.Errorf("%d connections", got)
	}
	res, err = a.client.Do(t.Context(), b.peer(), get(t, "/video/v1/assets"))
	if err != nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("%v, %v", res, err)
	}
	_ = text(t, res)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	a, b := start(t, "a", key(1), internode.Spoken()), start(t, "b", key(1), internode.Spoken())
	foreign := start(t, "c", key(2), internode.Spoken())
	again := start(t, "a", key(1), internode.Range{Oldest: 2, Newest: 3}) // another program with the same name
	for name, tt := range map[string]struct {
		url  string
		want internode.Code
	}{
		"itself":         {a.url, ""},
		"another node":   {b.url, internode.OtherNode},
		"another key":    {foreign.url, internode.ForeignKey},
		"other versions": {again.url, internode.Protocol},
		"nothing":        {"http://" + nobody(t), internode.Unreachable},
	} {
		if err := a.client.Check(ctx, tt.url); internode.CodeOf(err) != tt.want || (err == nil) != (tt.want == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOtherVersions: nodes whose versions of the protocol have one in common answer each other; others refuse each
// other's requests, and each of them says so.
func TestOtherVersions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		older, newer internode.Range
		served       bool
	}{
		"one in common":  {internode.Range{Oldest: 1, Newest: 1}, internode.Range{Oldest: 1, Newest: 2}, true},
		"several":        {internode.Range{Oldest: 1, Newest: 3}, internode.Range{Oldest: 2, Newest: 4}, true},
		"none in common": {internode.Range{Oldest: 1, Newest: 2}, internode.Range{Oldest: 3, Newest: 4}, false},
		"none is said":   {internode.Range{}, internode.Range{Oldest: 1, Newest: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			older, newer := start(t, "a", key(1), tt.older), start(t, "b", key(1), tt.newer)
			for _, n := range []*node{older, newer} {
				n.Handle("/edge", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(http.StatusAccepted)
				}))
			}
			for from, to := range map[*node]*node{older: newer, newer: older} {
				res, err := from.client.Do(t.Context(), to.peer(), get(t, "/edge"))
				if err == nil {
					_ = text(t, res)
					if got := res.Header.Get("Millrace-Speaks"); got != to.self.Speaks.String() {
						t.Errorf("%s says that it speaks %q", to.self.Node, got)
					}
				}
				if (err == nil) != tt.served {
					t.Errorf("asked by %s: %v", from.self.Node, err)
				}
				if !tt.served && (internode.CodeOf(err) != internode.Protocol ||
					!strings.Contains(err.Error(), "two that follow one another")) {
					t.Errorf("asked by %s: %v", from.self.Node, err)
				}
				if _, err = from.client.Hello(t.Context(), to.peer()); (err == nil) != tt.served ||
					!tt.served && internode.CodeOf(err) != internode.Protocol {
					t.Errorf("%s says hello: %v", from.self.Node, err)
				}
			}
			for _, n := range []*node{older, newer} {
				for _, line := range []string{
					"request to the listener for nodes refused", "a node speaks other versions",
				} {
					if strings.Contains(n.log.String(), line) == tt.served {
						t.Errorf("%s says %q: %t\n%s", n.self.Node, line, tt.served, n.log.String())
					}
				}
			}
		})
	}
}

// nobody is an address where nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}
