package express_test

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/internal/web/express"
)

const end = " HTTP/1.1\r\nHost: x.example:80\r\n\r\n"

// conversation is what a viewer, or somebody who is none, says on a connection; here: how many of its requests are
// served here.
type conversation struct {
	said string
	here int64
}

func conversations() []conversation {
	const host = "Host: a\r\n"
	get := func(fields string) string { return "GET /echo HTTP/1.1\r\n" + fields + "\r\n" }
	return []conversation{
		{"GET /echo?a=b&c=d" + end, 1},
		{get("host: h\r\naccept-encoding: gzip, br\r\nX_y: \t z \t\r\nReferer: http://x/?a b\xff\r\n"), 1},
		{
			get(host +
				"Range: bytes=1-2\r\nIf-Range: \"x\"\r\nIf-None-Match: *\r\nIf-Modified-Since: Sat, 21 Nov 2026 " +
				"00:00:00 GMT\r\nOrigin: http://o\r\n"), 1,
		},
		{
			get(host +
				"Te: trailers\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nCookie: a=b; " +
				"c=d\r\nAuthorization: Basic eDp5\r\n"), 1,
		},
		{
			"HEAD /length" + end + "HEAD /echo" + end + "HEAD /file" + end + "HEAD /stream" + end + "HEAD /nothing" +
				end + "GET /length" + end, 6,
		},
		{"GET /length" + end + "GET /echo" + end + "GET /nothing" + end + "GET /echo?again" + end, 4},
		{"GET /echo" + end + get(host) + get(host+"A: b\r\n") + get(host) + "HEAD /echo" + end, 5},
		{"GET /large" + end + "GET /file" + end + "GET /length" + end + "GET /stream" + end + "GET /html" + end, 5},
		{
			"GET /status?200" + end + "GET /status?204" + end + "GET /status?304" + end + "GET /status?412" + end +
				"GET /status?599" + end + "HEAD /status?412" + end, 6,
		},
		{"GET /unknown" + end, 1},
		{"GET /last" + end, 1},
		{"GET /length" + end + "GET", 1},
		{"GET /length" + end + "\r\n", 1},
		{"GET /length" + end + "\n\n\n\n", 1},
		{"GET /length" + end + "GET ", 1},
		{"GET /short" + end, 1},
		{"GET /long" + end, 1},
		{"HEAD /long" + end, 1},
		{"GET /shortfile" + end, 1},
		{"GET /panic" + end, 1},
		{get(host + "Connection: close\r\n"), 1},
		{get(host+"Connection: Keep-Alive\r\n") + get(host+"Connection: CLOSE\r\n"), 2},
		// what net/http is to judge, and to keep the connection of
		{"GET /api/x" + end + "GET /echo" + end, 0},
		{
			"GET /length" + end + "POST /api/x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + "GET /echo" + end,
			1,
		},
		{
			"POST /api/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + "GET /echo" +
				end, 0,
		},
		{"POST /api/x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", 0},
		{"OPTIONS /echo" + end + "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 0},
		{"TRACE /echo" + end + "get /echo" + end, 0},
		{"GET /echo HTTP/1.0\r\n\r\n", 0},
		{"GET /echo HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n" + "GET /echo HTTP/1.0\r\n\r\n", 0},
		{"GET /echo HTTP/1.2\r\nHost: a\r\n\r\n", 0},
		{"GET /echo HTTP/2.0\r\nHost: a\r\n\r\n", 0},
		{"GET /echo http/1.1\r\nHost: a\r\n\r\n", 0},
		{"GET /echo\r\n\r\n", 0},
		{"GET /echo \r\nHost: a\r\n\r\n", 0},
		{"GET  /echo" + end, 0},
		{"GET\t/echo" + end, 0},
		{" GET /echo" + end, 0},
		{"GET /echo  HTTP/1.1\r\nHost: a\r\n\r\n", 0},
		{"GET /echo HTTP/1.1 \r\nHost: a\r\n\r\n", 0},
		{"\r\nGET /echo" + end, 0},
		{"\r\n\r\n", 0},
		{"GET /e%63ho" + end, 0},
		{"GET /a/../echo" + end, 0},
		{"GET /./echo" + end, 0},
		{"GET //echo" + end, 0},
		{"GET /echo?" + end, 0},
		{"GET /echo?a?b" + end, 0},
		{"GET /echo?a=%2e+b" + end, 0},
		{"GET /echo#f" + end, 0},
		{"GET /\xc3\xa9" + end, 0},
		{"GET /a\\b" + end, 0},
		{"GET /a;b" + end, 0},
		{"GET http://h/echo" + end, 0},
		{"GET echo" + end, 0},
		{"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 0},
		{"GET *" + end, 0},
		// smuggling: whatever two readers might read differently
		{get(""), 0},
		{get("Host: \r\n"), 0},
		{get("Host: a\r\nHost: b\r\n"), 0},
		{get("Host: a b\r\n"), 0},
		{get("Host: a/b\r\n"), 0},
		{get("Host : a\r\n"), 0},
		{get(host + "Content-Length: 0\r\n"), 0},
		{get(host+"Content-Length: 3\r\n") + "abcGET /echo" + end, 0},
		{get(host+"Content-Length: 3\r\nContent-Length: 4\r\n") + "abcd", 0},
		{get(host+"Content-Length: 3, 3\r\n") + "abc", 0},
		{get(host+"Content-Length: +3\r\n") + "abc", 0},
		{get(host+"content-length: 0x3\r\n") + "abc", 0},
		{get(host+"Content-Length: 30\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\nGET /echo" + end, 0},
		{get(host+"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n") + "0\r\n\r\n", 0},
		{get(host+"Transfer-Encoding: xchunked\r\n") + "0\r\n\r\n", 0},
		{get(host+"Transfer-Encoding:\x0bchunked\r\n") + "0\r\n\r\n", 0},
		{get(host+"transfer_encoding: chunked\r\n") + "GET /nothing" + end, 2}, // a name like any other, here and there
		{get(host + "X: 1\r\nX: 2\r\n"), 0},
		{get(host + " folded: x\r\n"), 0},
		{get(host + "A: b\r\n\tc\r\n"), 0},
		{get(host + "bad name: x\r\n"), 0},
		{get(host + ": x\r\n"), 0},
		{get(host + "nothing\r\n"), 0},
		{get(host + "X: a\x00b\r\n"), 0},
		{get(host + "X\x00: a\r\n"), 0},
		{get(host + "X: a\rb\r\n"), 0},
		{get(host + "X: \x7f\r\n"), 0},
		{"GET /echo HTTP/1.1\nHost: a\n\n", 0},
		{"GET /echo HTTP/1.1\r\nHost: a\n\r\n", 0},
		{"GET /echo HTTP/1.1\r\nHost: a\r\n\n", 0},
		{"GET /echo HTTP/1.1\r\nHost: a\r\r\n\r\n", 0},
		{"GET /echo\nX HTTP/1.1\r\nHost: a\r\n\r\n", 0},
		{"GET /echo\x00 HTTP/1.1\r\nHost: a\r\n\r\n", 0},
		{get(host + "X: " + strings.Repeat("a", 9000) + "\r\n"), 0},
		{get(host + "X: " + strings.Repeat("a", 80000) + "\r\n"), 0},
		{get(host + strings.Repeat("X: y\r\n", 100)), 0},
		{"GET /" + strings.Repeat("a", 9000) + end, 0},
		{
			get(host +
				"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"),
			0,
		},
		{get(host + "Connection: Upgrade\r\nUpgrade: websocket\r\n"), 0},
		{get(host + "Connection: close, x\r\n"), 0},
		{get(host + "Expect: 100-continue\r\n"), 0},
		{get(host + "Trailer: X\r\n"), 0},
		{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 0},
		{"", 0},
		{"GET /echo HTTP/1.1\r\nHost: a\r\n", 0},
		{"GE", 0},
	}
}

// TestRespondsLikeNetHTTP sends the same bytes to both, in one piece and byte by byte.
func TestRespondsLikeNetHTTP(t *testing.T) {
	t.Parallel()
	eachWay(t, testRespondsLikeNetHTTP)
}

func testRespondsLikeNetHTTP(t *testing.T, w way) { //nolint:thelper // it is the test
	s := w.serve(t, handler(t), express.Options{})
	for _, c := range conversations() {
		before := s.taken.Load()
		fast, plain := w.converse(t, s.fast, c.said), w.converse(t, s.plain, c.said)
		if !same(fast, plain) {
			t.Errorf("%.200q:\n%.900s, net/http says\n%.900s", c.said, text(fast), text(plain))
		}
		if here := s.taken.Load() - before; here != c.here {
			t.Errorf("%.200q: %d requests were served here, not %d", c.said, here, c.here)
		}
	}
}

// FuzzConversation: whatever is said, both respond the same.
func FuzzConversation(f *testing.F) {
	for _, c := range conversations() {
		if len(c.said) < 2000 {
			f.Add([]byte(c.said))
		}
	}
	s := inClear.serve(f, handler(f), express.Options{})
	f.Fuzz(func(t *testing.T, said []byte) {
		fast, plain := inClear.converse(t, s.fast, string(said)), inClear.converse(t, s.plain, string(said))
		if !same(fast, plain) {
			t.Errorf("%q:\n%.900s, net/http says\n%.900s", said, text(fast), text(plain))
		}
	})
}

// TestHeadInPieces sends requests byte by byte, also one that net/http takes over in the middle.
func TestHeadInPieces(t *testing.T) {
	t.Parallel()
	eachWay(t, testHeadInPieces)
}

func testHeadInPieces(t *testing.T, w way) { //nolint:thelper // it is the test
	s := w.serve(t, handler(t), express.Options{})
	nc := w.dial(t, s.fast)
	br := bufio.NewReader(nc)
	const get = "GET /length HTTP/1.1\r\nHost: x\r\nX-Filler: "
	for i, text := range []string{
		get + strings.Repeat("f", 2000) + "\r\n\r\n", get + "g\r\n\r\n",
		get + "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", get + "h\r\n\r\n",
	} {
		for _, b := range []byte(text) {
			if _, err := nc.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		r, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(r.Body); string(body) != "hello" || err != nil {
			t.Errorf("%d: %q, %v", i, body, err)
		}
	}
	if n := s.taken.Load(); n != 2 {
		t.Errorf("%d here", n)
	}
}

// TestHTTP2InClearText passes through to net/http, from the preface on.
func TestHTTP2InClearText(t *testing.T) {
	t.Parallel()
	s := inClear.serve(t, handler(t), express.Options{})
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: &protocols}
	defer tr.CloseIdleConnections()
	for range 3 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.fast+"/echo", nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil || r.ProtoMajor != 2 || !strings.HasPrefix(string(body), "GET HTTP/2.0") || s.taken.Load() != 0 {
			t.Errorf("%s %q, %v, %d here", r.Proto, body, err, s.taken.Load())
		}
	}
}

// TestConnectionsEnd where they have to.
func TestConnectionsEnd(t *testing.T) {
	t.Parallel()
	eachWay(t, testConnectionsEnd)
}

func testConnectionsEnd(t *testing.T, w way) { //nolint:thelper // it is the test
	short := 50 * time.Millisecond
	if w.secure { // a handshake has to come in time, too
		short = time.Second
	}
	s := w.serve(t, handler(t), express.Options{HeaderTimeout: short, IdleTimeout: short, WriteTimeout: 4 * short})
	get := "GET /length HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, request := range map[string]string{
		"nothing said": "", "half a head": "GET /length HTTP/1.1\r\nHo", "idle": get,
		"half a head later":   get + get[:len(get)-1],
		"less than announced": "GET /short" + end, "panic": "GET /panic" + end,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nc := w.dial(t, s.fast)
			_, _ = io.WriteString(nc, request) // who was slow to begin is closed, too
			// What comes while the connection is being closed, as from a viewer that was slow to begin, makes a reset
			// of the end.
			if _, err := io.Copy(io.Discard, nc); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection stays open: %v", err)
			}
		})
	}
	t.Run("slow head", func(t *testing.T) { // each byte in time, the whole head never
		t.Parallel()
		for _, before := range []string{"", get} {
			nc := w.dial(t, s.fast)
			_, _ = io.WriteString(nc, before+"GET /length HTTP/1.1\r\nHost: x\r\nX: ")
			tick := time.NewTicker(short / 5)
			defer tick.Stop()
			n := 0
			for ; n < 2000; n++ {
				<-tick.C
				if _, err := nc.Write([]byte("y")); err != nil {
					break
				}
			}
			if n == 2000 {
				t.Error("the connection stays open")
			}
		}
	})
	t.Run("slow reader", func(t *testing.T) { // takes a little again and again, the whole never
		t.Parallel()
		nc := w.dial(t, s.fast)
		if err := nc.tcp.SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(nc, strings.Repeat("GET /large"+end, 8))
		tick := time.NewTicker(short / 2)
		defer tick.Stop()
		n, b := 0, make([]byte, 1000)
		for ; n < 2000; n++ {
			<-tick.C
			if _, err := nc.Write([]byte("G")); err != nil { // the server's end shows here first
				break
			}
			_, _ = nc.Read(b)
		}
		if n == 2000 {
			t.Error("the connection stays open")
		}
	})
}

// TestNothingTaken: a viewer that takes nothing of a response has little time, however much the whole may take.
func TestNothingTaken(t *testing.T) {
	t.Parallel()
	eachWay(t, testNothingTaken)
}

func testNothingTaken(t *testing.T, w way) { //nolint:thelper // it is the test
	s := w.serve(t, handler(t), express.Options{StallTimeout: 50 * time.Millisecond, WriteTimeout: time.Hour})
	nc := w.dial(t, s.fast)
	if err := nc.tcp.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	write(t, nc, strings.Repeat("GET /large"+end, 8))
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		<-tick.C
		if _, err := nc.Write([]byte("G")); err != nil { // the server's end shows here first
			return
		}
		if n == 3000 {
			t.Fatal("the connection stays open")
		}
	}
}

// troubled is a listener that fails for a while and has a connection that is no TCP.
type troubled struct {
	net.Listener
	fails int
	odd   net.Conn
}

func (t *troubled) Accept() (net.Conn, error) {
	if t.fails > 0 {
		t.fails--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	if nc := t.odd; nc != nil {
		t.odd = nil
		return nc, nil
	}
	return t.Listener.Accept()
}

// TestAcceptRecovers from a lack of descriptors, and gives away what it can't read cheaply.
func TestAcceptRecovers(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	inner := &troubled{Listener: listen(t), fails: 6, odd: theirs}
	l := express.Listen(t.Context(), inner, express.Options{
		Handler: handler(t), Takes: func(string) bool { return true }, Logger: slog.New(slog.DiscardHandler),
	})
	got, err := l.Accept()
	if err != nil || got != theirs {
		t.Fatalf("%v, %v", got, err)
	}
	_ = errors.Join(ours.Close(), theirs.Close()) // pipes
	nc := dial(t, inner.Addr().String())
	write(t, nc, "GET /length HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if b, err := io.ReadAll(nc); err != nil || !strings.HasSuffix(string(b), "hello") {
		t.Errorf("%q, %v", b, err)
	}
	if err := l.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
