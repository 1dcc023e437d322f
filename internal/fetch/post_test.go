package fetch_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/fetch"
)

// TestPost sends a body once and takes whatever the response is, redirects too, but no more of it than is wanted.
func TestPost(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32 // a request whose client no longer waits may still be on its way when the next comes
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/hang":
			<-r.Context().Done()
		case "/trickle":
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		default:
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(r.Method + " " + string(body) + " " + r.Header.Get("Mux-Signature") +
				strings.Repeat("y", 1<<20)))
		}
	}))
	t.Cleanup(srv.Close)
	within := func(limit time.Duration) *fetch.Client {
		c := fetch.New(fetch.Options{
			Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Timeouts: fetch.Timeouts{Get: limit},
		})
		t.Cleanup(c.Close)
		return c
	}
	c := within(time.Minute)
	header := http.Header{"Mux-Signature": {"signed"}}
	a, err := c.Post(t.Context(), srv.URL, header, []byte("body"), 16)
	if err != nil || a.Status != http.StatusTeapot || a.RetryAfter != 7*time.Second ||
		string(a.Body) != "POST body signed" || asked.Load() != 1 {
		t.Errorf("%+v, %v, asked %d times", a, err, asked.Load())
	}
	if a, err = c.Post(t.Context(), srv.URL+"/redirect", header, nil, 16); err != nil ||
		a.Status != http.StatusTemporaryRedirect || asked.Load() != 2 {
		t.Errorf("%+v, %v, asked %d times", a, err, asked.Load())
	}
	if a, err = within(50*time.Millisecond).Post(t.Context(), srv.URL+"/hang", header, nil, 16); err == nil ||
		a.Status != 0 || !strings.Contains(err.Error(), "it took too long") {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err = within(3*time.Second).Post(t.Context(), srv.URL+"/trickle", header, nil, 1<<20); err == nil ||
		a.Status != http.StatusOK {
		t.Errorf("%+v, %v", a, err)
	}
	strict := fetch.New(fetch.Options{})
	t.Cleanup(strict.Close)
	if _, err = strict.Post(t.Context(), srv.URL, header, nil, 16); err == nil ||
		!strings.Contains(err.Error(), "--fetch-allow") {
		t.Errorf("to this host: %v", err)
	}
}

// TestPostAfterClose: a server that closes a connection once the second request on it has come, as one does whose time
// for kept connections is over, gets the body on a new one. On a new connection that breaks off it is not sent again.
func TestPostAfterClose(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answers := []int{1, 1, 0} // of each connection, until it is closed
	bodies := make(chan string, 2*len(answers))
	served := make(chan struct{})
	go func() {
		defer close(served)
		for _, n := range answers {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serveUntilClosed(conn, n, bodies)
		}
	}()
	c := fetch.New(fetch.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	t.Cleanup(c.Close)
	url := "http://" + listener.Addr().String()
	for _, body := range []string{"first", "second"} {
		a, err := c.Post(t.Context(), url, http.Header{}, []byte(body), 16)
		if err != nil || a.Status != http.StatusNoContent {
			t.Errorf("%s: %+v, %v", body, a, err)
		}
	}
	if _, err := c.Post(t.Context(), url, http.Header{}, []byte("third"), 16); err == nil {
		t.Error("a new connection that broke off gave a response")
	}
	_ = listener.Close()
	<-served
	close(bodies)
	var got []string
	for body := range bodies {
		got = append(got, body)
	}
	if want := "first second second third third"; strings.Join(got, " ") != want {
		t.Errorf("the server got %v, want %s", got, want)
	}
}

// serveUntilClosed responds to so many requests on a connection, reads one more and closes it.
func serveUntilClosed(conn net.Conn, answers int, bodies chan<- string) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for n := 0; ; n++ {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		bodies <- string(body)
		if _, named := req.Header["Idempotency-Key"]; named || n == answers {
			return
		}
		if _, err = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
			return
		}
	}
}
