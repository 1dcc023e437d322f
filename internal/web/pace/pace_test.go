package pace_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/leaktest"
	"millrace/internal/web/pace"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// listener has one connection.
type listener struct{ conns chan net.Conn }

func (l *listener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l *listener) Close() error   { close(l.conns); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// piece is what a client sends of a body after a pause.
type piece struct {
	pause time.Duration
	bytes int
}

func times(n int, p piece) (out []piece) {
	for range n {
		out = append(out, p)
	}
	return out
}

// waits counts what a connection is told.
type waits struct {
	now, all int
	upTo     time.Time
}

func (w *waits) Waits(upTo time.Time) { w.now, w.all, w.upTo = w.now+1, w.all+1, upTo }
func (w *waits) Came()                { w.now-- }

// TestPace sends bodies at many paces to a handler that reads them.
func TestPace(t *testing.T) {
	t.Parallel()
	fast := times(5, piece{time.Second, 20_000})
	for name, tt := range map[string]struct {
		method  string
		length  int
		pieces  []piece
		between time.Duration // that the handler takes for each read
		limit   time.Duration // deadline of the handler's own; 0: none
		grace   time.Duration
		slow    time.Duration // after which the body is ended; 0: it is read to its end
		timeout bool          // the handler's deadline ends it
	}{
		"at once": {length: 60_000, pieces: []piece{{0, 60_000}}, grace: pace.Grace},
		"nothing": {length: 10, grace: pace.Grace, slow: 10 * time.Second},
		"a byte a second": {
			length: 1000, pieces: times(1000, piece{time.Second, 1}), grace: pace.Grace, slow: 10010 * time.Millisecond,
		},
		"a slow link": {length: 600_000, pieces: times(300, piece{time.Second, 2000}), grace: pace.Grace},
		"just too slow": {
			length: 60_000, pieces: times(100, piece{time.Second, 600}), grace: pace.Grace,
			slow: 23800 * time.Millisecond,
		},
		"a link that comes back": {
			length: 200_000, grace: pace.UploadGrace,
			pieces: slices.Concat(fast, []piece{{59 * time.Second, 20_000}}, fast[1:]),
		},
		"a link that does not": {
			length: 200_000, grace: pace.UploadGrace, pieces: append(slices.Clone(fast), piece{61 * time.Second, 1}),
			slow: 65 * time.Second,
		},
		"our disk is slow": {
			length: 40, pieces: times(40, piece{100 * time.Millisecond, 1}), grace: pace.Grace,
			between: 10 * time.Second,
		},
		"a deadline of the handler's": {
			length: 10, limit: 3 * time.Second, grace: pace.Grace, slow: 3 * time.Second, timeout: true,
		},
		"a GET": {method: "GET", length: 10, grace: pace.Grace, slow: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var read int64
				var failed error
				var ended time.Duration
				conn := &waits{}
				begun := time.Now()
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w, r, done := pace.Keep(w, r, tt.grace, conn)
					defer done()
					if tt.limit > 0 {
						_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(tt.limit))
					}
					buf := make([]byte, 1<<20)
					for failed == nil {
						var n int
						n, failed = r.Body.Read(buf)
						read += int64(n)
						time.Sleep(tt.between)
					}
					ended = time.Since(begun) - tt.between
					if conn.now != 0 {
						t.Errorf("%d reads still wait", conn.now)
					}
					w.WriteHeader(http.StatusNoContent)
				})
				server := &http.Server{Handler: h, ReadTimeout: 2 * time.Minute}
				near, far := net.Pipe()
				l := &listener{make(chan net.Conn, 1)}
				l.conns <- far
				served := make(chan error, 1)
				go func() { served <- server.Serve(l) }()
				if tt.method == "" {
					tt.method = "POST"
				}
				go func() {
					_, err := fmt.Fprintf(near,
						"%s / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", tt.method, tt.length)
					for _, p := range tt.pieces {
						if err == nil {
							time.Sleep(p.pause)
							_, err = near.Write(make([]byte, p.bytes))
						}
					}
				}()
				resp, err := http.ReadResponse(bufio.NewReader(near), nil)
				if err != nil || resp.StatusCode != http.StatusNoContent {
					t.Fatal(resp, err)
				}
				whole := errors.Is(failed, io.EOF)
				if tt.slow == 0 && (!whole || read != int64(tt.length)) {
					t.Errorf("%d of %d bytes, then %v after %v", read, tt.length, failed, ended)
				}
				slow := pace.TooSlow(failed) && errors.Is(failed, pace.ErrSlow) != tt.timeout
				if tt.slow > 0 && (!slow || ended != tt.slow) {
					t.Errorf("%v after %v, want %v", failed, ended, tt.slow)
				}
				_ = near.Close()
				_ = server.Close()
				<-served
				time.Sleep(2 * time.Minute) // the client sees that it is over
			})
		})
	}
}

// TestUnread responds without having read the body: what is left may take a second, and the connection waits for it.
func TestUnread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := &waits{}
		begun := time.Now()
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w, _, done := pace.Keep(w, r, pace.Grace, conn)
			defer done()
			w.WriteHeader(http.StatusUnauthorized)
		})
		server := &http.Server{ReadTimeout: 2 * time.Minute, Handler: h}
		near, far := net.Pipe()
		l := &listener{make(chan net.Conn, 1)}
		l.conns <- far
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		if _, err := io.WriteString(near, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(near), nil)
		if err != nil || resp.StatusCode != http.StatusUnauthorized || time.Since(begun) != time.Second {
			t.Errorf("%v, %v after %v", resp, err, time.Since(begun))
		}
		if conn.now != 1 || !conn.upTo.Equal(begun) {
			t.Errorf("%d waits, from %v on", conn.now, conn.upTo.Sub(begun))
		}
		_ = near.Close()
		_ = server.Close()
		<-served
		synctest.Wait()
	})
}
