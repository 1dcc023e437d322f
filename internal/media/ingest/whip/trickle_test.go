package whip

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/ingest/ingesttest"
	"millrace/internal/web/respond"
)

// oneConn is a listener that has one connection.
type oneConn struct {
	conn chan net.Conn
	done chan struct{}
}

func (o oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-o.conn:
		return c, nil
	case <-o.done:
		return nil, net.ErrClosed
	}
}

func (o oneConn) Close() error { close(o.done); return nil }

func (o oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// TestTrickle: who sends a body byte by byte, with a key that is guessed or none, is told so and hung up on.
func TestTrickle(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		auth   string
		length string
		status int
		within time.Duration
	}{
		"any key":         {"Bearer guessed", "Content-Length: 5000", http.StatusRequestTimeout, bodyTime},
		"any key, pieces": {"Bearer guessed", "Transfer-Encoding: chunked", http.StatusRequestTimeout, bodyTime},
		"no key":          {"", "Content-Length: 5000", http.StatusUnauthorized, respond.UnreadTime},
		"no key, pieces":  {"", "Transfer-Encoding: chunked", http.StatusUnauthorized, respond.UnreadTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := &ingesttest.Log{}
				s := New(Options{Logger: log.Logger()})
				ours, theirs := net.Pipe()
				ln := oneConn{make(chan net.Conn, 1), make(chan struct{})}
				ln.conn <- ours
				web := &http.Server{Handler: s}
				go func() { _ = web.Serve(ln) }()
				began := time.Now()
				sent := make(chan time.Duration, 1)
				go func() { // until the connection is closed
					_, err := fmt.Fprintf(theirs, "POST /whip HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\n"+
						"Authorization: %s\r\n%s\r\n\r\n", typeSDP, tt.auth, tt.length)
					for err == nil {
						time.Sleep(500 * time.Millisecond)
						piece := "v"
						if tt.length[0] == 'T' {
							piece = "1\r\nv\r\n"
						}
						_, err = theirs.Write([]byte(piece))
					}
					sent <- time.Since(began)
				}()
				response, err := http.ReadResponse(bufio.NewReader(theirs), nil)
				if err != nil {
					t.Fatal(err)
				}
				if response.StatusCode != tt.status || !response.Close {
					t.Errorf("%s, closed: %t", response.Status, response.Close)
				}
				if took := time.Since(began); took > tt.within {
					t.Errorf("the response came after %v", took)
				}
				_ = response.Body.Close()
				if took := <-sent; took > tt.within+2*respond.UnreadTime {
					t.Errorf("the connection was closed after %v", took)
				}
				_ = web.Close()
			})
		})
	}
}
