package express_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/leaktest"
	"millrace/internal/web/express"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// way is how viewers come.
type way struct {
	name   string
	secure bool
}

var inClear, overTLS = way{"in clear text", false}, way{"over TLS", true}

// eachWay runs a test in clear text and over TLS.
func eachWay(t *testing.T, test func(t *testing.T, w way)) {
	t.Helper()
	for _, w := range []way{inClear, overTLS} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

// identity is a certificate for tests.
var identity = sync.OnceValue(func() tls.Certificate {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return s.TLS.Certificates[0]
})

// server is what a listener needs; nil: nothing.
func (w way) server() *tls.Config {
	if !w.secure {
		return nil
	}
	return &tls.Config{
		Certificates: []tls.Certificate{identity()}, NextProtos: []string{"h2", "http/1.1"},
		DynamicRecordSizingDisabled: true,
	}
}

// viewer is a viewer's side of a connection.
type viewer struct {
	net.Conn

	tcp *net.TCPConn
}

// CloseWrite says that nothing more comes.
func (v *viewer) CloseWrite() error { return v.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// dial connects; the handshake comes with what is said or read first.
func (w way) dial(t testing.TB, addr string) *viewer {
	t.Helper()
	return w.over(dial(t, addr))
}

func (w way) over(nc *net.TCPConn) *viewer {
	if !w.secure {
		return &viewer{nc, nc}
	}
	return &viewer{tls.Client(nc, &tls.Config{InsecureSkipVerify: true, ServerName: "x.example"}), nc}
}

// servers are an express listener with net/http behind it, and net/http alone, with the same handler.
type servers struct {
	fast, plain string // addresses
	listener    *express.Listener
	taken       *atomic.Int64 // requests that express served
}

func (w way) serve(t testing.TB, h http.Handler, o express.Options) *servers {
	t.Helper()
	s := &servers{taken: &atomic.Int64{}}
	o.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.taken.Add(1)
		h.ServeHTTP(w, r)
	})
	if o.Takes == nil {
		o.Takes = func(path string) bool { return !strings.HasPrefix(path, "/api") }
	}
	o.Logger, o.TLS = slog.New(slog.DiscardHandler), w.server()
	inner, other := listen(t), listen(t)
	s.fast, s.plain = inner.Addr().String(), other.Addr().String()
	s.listener = express.Listen(context.WithoutCancel(t.Context()), inner, o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := s.listener.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	behind(t, s.listener, h)
	if w.secure {
		other = tls.NewListener(other, o.TLS)
	}
	behind(t, other, h)
	return s
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// behind runs net/http on a listener until the test ends.
func behind(t testing.TB, ln net.Listener, h http.Handler) {
	t.Helper()
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: h, Protocols: &protocols, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		<-done
	})
}

// dial connects for a test that is over within two minutes, on a machine that has other work too.
func dial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return nc.(*net.TCPConn)
}

func write(t testing.TB, nc net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatal(err)
	}
}

// told is one response, as far as two servers have to agree.
type reply struct {
	status int
	proto  string
	head   string // without Date, sorted
	body   string
	coding []string
	cut    bool // the body broke off
	close  bool
}

// converse sends bytes as they are, reads all responses, and says that nothing more comes when it has one for each
// request: before that it would mean to net/http that nobody waits for the last one, whose handler is then told so.
func (w way) converse(t testing.TB, addr, request string) (all []reply) {
	t.Helper()
	nc := w.dial(t, addr)
	defer nc.Close()
	_, _ = io.WriteString(nc, request) // a server that has heard enough may have closed
	br := bufio.NewReader(nc)
	asked := bufio.NewReader(strings.NewReader(request))
	for {
		method, whole := nextOf(asked)
		if !whole {
			_ = nc.CloseWrite()
		}
		r, err := http.ReadResponse(br, &http.Request{Method: method})
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%q: the connection stays open", request)
			}
			return all
		}
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		a := reply{status: r.StatusCode, proto: r.Proto, body: string(body), coding: r.TransferEncoding, close: r.Close}
		a.cut = err != nil && (r.ContentLength >= 0 || len(r.TransferEncoding) > 0)
		if _, err := http.ParseTime(r.Header.Get("Date")); r.Header["Date"] != nil && err != nil {
			t.Errorf("%q: %v", request, err)
		}
		r.Header.Del("Date")
		var b bytes.Buffer
		_ = r.Header.Write(&b) // a buffer takes everything
		a.head = b.String()
		all = append(all, a)
	}
}

// nextOf takes a request out of what was sent. Where none is left, or what is left is not a whole one, servers find out
// by the end alone.
func nextOf(asked *bufio.Reader) (method string, whole bool) {
	r, err := http.ReadRequest(asked)
	if err != nil {
		return http.MethodGet, false
	}
	_, err = io.Copy(io.Discard, r.Body)
	return r.Method, err == nil
}

func text(all []reply) string { return fmt.Sprintf("%q", fmt.Sprint(all)) }

// same reports whether two servers told the same.
func same(a, b []reply) bool {
	return slices.EqualFunc(a, b, func(x, y reply) bool { return text([]reply{x}) == text([]reply{y}) })
}

// handler responds in the ways that a handler can.
func handler(t testing.TB) http.Handler {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, bytes.Repeat([]byte("0123456789abcdef"), 40<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	handle := func(path string, f func(w http.ResponseWriter, r *http.Request)) { mux.HandleFunc(path, f) }
	handle("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Line", "a\r\nb")
		fmt.Fprintf(w, "%s %s %q %q %q|%s|%s|%v|%d|%v|%s", r.Method, r.Proto, r.URL.Path, r.URL.RawPath, r.URL.RawQuery,
			r.Host, r.RequestURI, r.Header, r.ContentLength, r.Close, secret(r))
	})
	handle("/length", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", "5")
		_, _ = io.WriteString(w, "he")
		_, _ = io.WriteString(w, "llo")
	})
	sized := func(head http.Header, body []byte) {
		head.Set("Content-Type", "text/plain")
		head.Set("Content-Length", strconv.Itoa(len(body)))
	}
	handle("/large", func(w http.ResponseWriter, _ *http.Request) {
		data := bytes.Repeat([]byte("x"), 3<<20)
		sized(w.Header(), data)
		_, _ = w.Write(data)
	})
	fromFile := func(w http.ResponseWriter, announced, given int64) {
		f, err := os.Open(file)
		if err != nil {
			panic(err)
		}
		defer f.Close()
		w.Header().Set("Content-Type", "video/mp4")
		w.Header().Set("Content-Length", strconv.FormatInt(announced, 10))
		_, _ = io.Copy(w, io.LimitReader(f, given))
	}
	handle("/file", func(w http.ResponseWriter, _ *http.Request) { fromFile(w, 500000, 500000) })
	handle("/shortfile", func(w http.ResponseWriter, _ *http.Request) { fromFile(w, 500000, 400000) })
	handle("/stream", func(w http.ResponseWriter, _ *http.Request) { // not announced: chunks
		for i := range 40 {
			_, _ = w.Write(bytes.Repeat([]byte{'a' + byte(i%26)}, 1000*(i%7)))
		}
	})
	handle("/html", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<!DOCTYPE html><p>") })
	handle("/status", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.RawQuery)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(n)
		if n == 412 {
			_, _ = io.WriteString(w, `{"error":"later"}`)
		}
		if _, err := w.Write([]byte("x")); (n == 204 || n == 304) && !errors.Is(err, http.ErrBodyNotAllowed) {
			t.Errorf("%d with a body: %v", n, err)
		}
	})
	handle("/nothing", func(http.ResponseWriter, *http.Request) {})
	handle("/last", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	handle("/short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "short")
	})
	handle("/long", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		if _, err := io.WriteString(w, "too much"); !errors.Is(err, http.ErrContentLength) {
			t.Errorf("more than announced: %v", err)
		}
	})
	handle("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	handle("/api/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "api %s %s %s", r.Method, body, secret(r))
	})
	return mux
}

// secret is what a handler knows of TLS.
func secret(r *http.Request) string {
	if r.TLS == nil {
		return "in clear text"
	}
	return fmt.Sprint(r.TLS.HandshakeComplete, r.TLS.Version, r.TLS.ServerName, r.TLS.NegotiatedProtocol)
}
