package express_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/web/express"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// servers are an express listener with net/http behind it, and net/http alone, with the same handler.
type servers struct {
	fast, plain string // addresses
	listener    *express.Listener
	taken       func() int // requests that express answered
}

func serve(t *testing.T, h http.Handler, o express.Options) *servers {
	t.Helper()
	counts := make(chan int, 1)
	counts <- 0
	s := &servers{taken: func() int { n := <-counts; counts <- n; return n }}
	o.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counts <- 1 + <-counts
		h.ServeHTTP(w, r)
	})
	if o.Takes == nil {
		o.Takes = func(path string) bool { return !strings.HasPrefix(path, "/api") }
	}
	o.Logger = slog.New(slog.DiscardHandler)
	listen := func() net.Listener {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	run := func(ln net.Listener) {
		server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
		done := make(chan error, 1)
		go func() { done <- server.Serve(ln) }()
		t.Cleanup(func() {
			if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
			<-done
		})
	}
	inner := listen()
	s.listener = express.Listen(t.Context(), inner, o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := s.listener.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	run(s.listener)
	other := listen()
	run(other)
	s.fast, s.plain = inner.Addr().String(), other.Addr().String()
	return s
}

// say writes a request as it is and reads `answers` answers; what comes behind them is given too, when the server closes.
func say(t *testing.T, addr, request string, answers int) (got []*http.Response, bodies []string) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(nc, request); err != nil {
		t.Fatal(err)
	}
	br := bufio.NewReader(nc)
	for range answers {
		method, _, _ := strings.Cut(request, " ")
		r, err := http.ReadResponse(br, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%q: %v", request, err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatalf("%q: %v", request, err)
		}
		_ = r.Body.Close()
		got, bodies = append(got, r), append(bodies, string(body))
	}
	return got, bodies
}

// handler answers in the ways that a handler can.
func handler(t *testing.T) http.Handler {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, bytes.Repeat([]byte("0123456789abcdef"), 40<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	answer := func(path string, f func(w http.ResponseWriter, r *http.Request)) { mux.HandleFunc(path, f) }
	answer("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Line", "a\r\nb")
		fmt.Fprintf(w, "%s %s %s %s|%s|%v", r.Method, r.URL.Path, r.URL.RawQuery, r.Host, r.RequestURI, r.Header)
	})
	answer("/length", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", "5")
		_, _ = io.WriteString(w, "he")
		_, _ = io.WriteString(w, "llo")
	})
	answer("/large", func(w http.ResponseWriter, _ *http.Request) {
		data := bytes.Repeat([]byte("x"), 300<<10)
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data)
	})
	answer("/file", func(w http.ResponseWriter, _ *http.Request) {
		f, err := os.Open(file)
		if err != nil {
			panic(err)
		}
		defer f.Close()
		w.Header().Set("Content-Type", "video/mp4")
		w.Header().Set("Content-Length", "500000")
		_, _ = io.Copy(w, io.LimitReader(f, 500000))
	})
	answer("/endless", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for range 40 {
			_, _ = w.Write(bytes.Repeat([]byte("y"), 64<<10))
		}
	})
	answer("/status", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.RawQuery)
		w.WriteHeader(n)
		w.WriteHeader(500)
		if n == 412 {
			_, _ = io.WriteString(w, `{"error":"later"}`)
		}
	})
	answer("/nothing", func(http.ResponseWriter, *http.Request) {})
	answer("/short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "short")
	})
	answer("/long", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		if _, err := io.WriteString(w, "too much"); !errors.Is(err, http.ErrContentLength) {
			t.Errorf("more than announced: %v", err)
		}
		_, _ = io.WriteString(w, "four")
	})
	answer("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	answer("/api/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "api %s %s", r.Method, body)
	})
	return mux
}

// TestAnswersLikeNetHTTP sends the same bytes to both.
func TestAnswersLikeNetHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, handler(t), express.Options{})
	const end = " HTTP/1.1\r\nHost: x.example:80\r\n\r\n"
	for _, tt := range []struct {
		request string
		answers int
		fast    bool
	}{
		{"GET /echo?a=b&c=d" + end, 1, true},
		{"GET /echo HTTP/1.1\r\nhost: h\r\naccept-encoding: gzip, br\r\nX_y: \t z \t\r\nReferer: http://x/?a b\xff\r\n\r\n", 1, true},
		{"HEAD /length" + end, 1, true},
		{"HEAD /echo" + end, 1, true},
		{"GET /length" + end, 1, true},
		{"GET /length" + end + "GET /echo" + end + "GET /nothing" + end, 3, true},
		{"GET /large" + end + "GET /file" + end + "GET /length" + end, 3, true},
		{"HEAD /file" + end, 1, true},
		{"GET /endless" + end, 1, true},
		{"GET /status?204" + end + "GET /status?304" + end + "GET /status?412" + end + "GET /status?404" + end, 4, true},
		{"GET /unknown" + end, 1, true},
		{"GET /length HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 1, true},
		{"GET /length HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n", 1, true},
		// what net/http is to judge
		{"GET /api/x" + end, 1, false},
		{"POST /api/x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 1, false},
		{"POST /api/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 1, false},
		{"GET /echo HTTP/1.1\r\n\r\n", 1, false},
		{"GET /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 1, false},
		{"GET /echo HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\n\r\n", 1, false},
		{"GET /echo HTTP/1.0\r\nHost: a\r\n\r\n", 1, false},
		{"GET /e%63ho" + end, 1, false},
		{"GET /a/../echo" + end, 1, false},
		{"GET //echo" + end, 1, false},
		{"GET http://h/echo" + end, 1, false},
		{"GET /echo HTTP/1.1\r\nHost: a\r\n folded: x\r\n\r\n", 1, false},
		{"GET /echo HTTP/1.1\r\nHost: a\r\nbad name: x\r\n\r\n", 1, false},
		{"GET /echo HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n", 1, false},
		{"GET /echo HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 9000) + "\r\n\r\n", 1, false},
		{"GET /echo HTTP/1.1\nHost: a\n\nXXXX\r\n\r\n", 1, false},
		{"OPTIONS /echo" + end, 1, false},
		{"GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 1, false},
		{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 1, false},
	} {
		before := s.taken()
		fast, fastBodies := say(t, s.fast, tt.request, tt.answers)
		taken := s.taken() - before
		if tt.fast && taken != tt.answers || !tt.fast && taken != 0 {
			t.Errorf("%.60q: %d requests were answered here", tt.request, taken)
		}
		plain, plainBodies := say(t, s.plain, tt.request, tt.answers)
		for i := range fast {
			a, b := fast[i], plain[i]
			if a.StatusCode != b.StatusCode || fastBodies[i] != plainBodies[i] {
				t.Errorf("%.60q, %d: %d %.200q, net/http has %d %.200q", tt.request, i, a.StatusCode, fastBodies[i], b.StatusCode, plainBodies[i])
			}
			for name := range b.Header { // which kind of content it is, net/http guesses when nobody says
				if name != "Date" && name != "Content-Type" && fmt.Sprint(a.Header[name]) != fmt.Sprint(b.Header[name]) {
					t.Errorf("%.60q, %d: %s %q, net/http has %q", tt.request, i, name, a.Header[name], b.Header[name])
				}
			}
			if _, err := http.ParseTime(a.Header.Get("Date")); tt.fast && err != nil {
				t.Errorf("%.60q: %v", tt.request, err)
			}
			if a.Close != b.Close && !strings.HasPrefix(tt.request, "GET /endless") {
				t.Errorf("%.60q: connection ends: %v, net/http's %v", tt.request, a.Close, b.Close)
			}
		}
	}
}

// TestConnectionChangesHands: what was read before net/http takes over is not lost, and it keeps the connection.
func TestConnectionChangesHands(t *testing.T) {
	t.Parallel()
	s := serve(t, handler(t), express.Options{})
	const get, post = "GET /length HTTP/1.1\r\nHost: x\r\n\r\n", "POST /api/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
	_, bodies := say(t, s.fast, get+get+post+get+post, 5)
	if strings.Join(bodies, ",") != "hello,hello,api POST hello,hello,api POST hello" || s.taken() != 2 {
		t.Errorf("%q, %d here", bodies, s.taken())
	}
}

// TestMoreThanAnnounced: a body never runs into the next answer.
func TestMoreThanAnnounced(t *testing.T) {
	t.Parallel()
	s := serve(t, handler(t), express.Options{})
	const get = "GET /long HTTP/1.1\r\nHost: x\r\n\r\n"
	if _, bodies := say(t, s.fast, get+get, 2); bodies[0] != "four" || bodies[1] != "four" {
		t.Errorf("%q", bodies)
	}
}

// TestHeadInPieces sends a request byte by byte.
func TestHeadInPieces(t *testing.T) {
	t.Parallel()
	s := serve(t, handler(t), express.Options{})
	nc, err := net.Dial("tcp", s.fast)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	br := bufio.NewReader(nc)
	for range 2 {
		for _, b := range []byte("GET /length HTTP/1.1\r\nHost: x\r\nX-Filler: " + strings.Repeat("f", 2000) + "\r\n\r\n") {
			if _, err := nc.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(r.Body); string(body) != "hello" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
	}
	if s.taken() != 2 {
		t.Errorf("%d here", s.taken())
	}
}

// TestConnectionsEnd where they have to.
func TestConnectionsEnd(t *testing.T) {
	t.Parallel()
	s := serve(t, handler(t), express.Options{HeaderTimeout: 50 * time.Millisecond, IdleTimeout: 50 * time.Millisecond})
	for name, request := range map[string]string{
		"nothing said": "", "half a head": "GET /length HTTP/1.1\r\nHo", "idle": "GET /length HTTP/1.1\r\nHost: x\r\n\r\n",
		"less than announced": "GET /short HTTP/1.1\r\nHost: x\r\n\r\n", "panic": "GET /panic HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nc, err := net.Dial("tcp", s.fast)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if _, err := io.WriteString(nc, request); err != nil {
				t.Fatal(err)
			}
			if err := nc.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(nc); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection stays open")
			}
		})
	}
}

// TestShutdown lets an answer end and closes idle connections; a handler that goes on is cut off in the end.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for name, patient := range map[string]bool{"an answer ends": true, "an answer does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began, end := make(chan struct{}), make(chan struct{})
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l := express.Listen(t.Context(), ln, express.Options{
				Takes: func(string) bool { return true }, Logger: slog.New(slog.DiscardHandler),
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					close(began)
					select {
					case <-end:
						_, _ = io.WriteString(w, "whole")
					case <-r.Context().Done():
					}
				}),
			})
			idle, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer idle.Close()
			busy, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer busy.Close()
			if _, err := io.WriteString(busy, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			<-began
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			over := make(chan error, 1)
			go func() { over <- l.Shutdown(ctx) }()
			if _, err := io.ReadAll(idle); err != nil {
				t.Errorf("idle connection: %v", err)
			}
			if patient {
				close(end)
			} else {
				cancel()
			}
			if err := <-over; (err == nil) != patient {
				t.Errorf("shutdown: %v", err)
			}
			got, _ := io.ReadAll(busy)
			if patient && !strings.HasSuffix(string(got), "whole") {
				t.Errorf("answer %q", got)
			}
			if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("accept afterwards: %v", err)
			}
		})
	}
}
