package express_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/web/express"
	"millrace/internal/web/express/tlsrecord"
)

// overheard keeps what comes over a connection.
type overheard struct {
	net.Conn

	all bytes.Buffer
}

func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.Conn.Read(p)
	o.all.Write(p[:n])
	return n, err
}

// applicationData are the lengths of the records of content type 23 in what came, RFC 5246 section 6.2.1.
func applicationData(came []byte) (lengths []int) {
	for len(came) >= 5 {
		n := int(came[3])<<8 | int(came[4])
		if came[0] == 23 {
			lengths = append(lengths, n)
		}
		came = came[min(len(came), 5+n):]
	}
	return lengths
}

// TestFewRecords: head and body of a small response are one record, and those of a large one as few as there can be.
func TestFewRecords(t *testing.T) {
	t.Parallel()
	s := overTLS.serve(t, handler(t), express.Options{})
	const most = 16 << 10
	for path, body := range map[string]int{"/large": 3 << 20, "/file": 500000, "/html": 18} {
		heard := &overheard{Conn: dial(t, s.fast)}
		// TLS 1.2, where records of this type are nothing but what is served
		nc := tls.Client(heard, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
		write(t, nc, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		got, err := io.ReadAll(nc)
		if err != nil {
			t.Fatal(err)
		}
		if _, after, _ := bytes.Cut(got, []byte("\r\n\r\n")); len(after) != body {
			t.Errorf("%s: %d bytes", path, len(after))
		}
		if n := len(applicationData(heard.all.Bytes())); n != (len(got)+most-1)/most {
			t.Errorf("%s: %d records of %d bytes", path, n, len(got))
		}
	}
}

// TestOthersAreNetHTTPs: connections that have chosen another protocol, and those that do not speak TLS, are as
// net/http has them.
func TestOthersAreNetHTTPs(t *testing.T) {
	t.Parallel()
	ln := listen(t)
	config := overTLS.server()
	config.NextProtos = append(config.NextProtos, "acme-tls/1")
	l := express.Listen(t.Context(), ln, express.Options{
		Takes: func(string) bool { return true }, Handler: handler(t), TLS: config,
		Logger: slog.New(slog.DiscardHandler),
	})
	for _, protocol := range []string{"h2", "acme-tls/1"} {
		nc := tls.Client(dial(t,
			ln.Addr().String()), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
		if err := nc.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		secure, _ := got.(*tls.Conn)
		if secure == nil {
			t.Fatalf("%s: a %T", protocol, got)
		}
		state := secure.ConnectionState()
		if _, ok := secure.NetConn().(*tlsrecord.Conn); !ok || state.NegotiatedProtocol != protocol {
			t.Errorf("%s: %s, on a %T", protocol, state.NegotiatedProtocol, secure.NetConn())
		}
		_ = secure.Close()
	}
	if err := l.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	s := overTLS.serve(t, handler(t), express.Options{})
	for _, said := range []string{
		"GET /length" + end, "POST /api HTTP/1.1\r\n\r\n", "PRI * H", "\x16\x03\x01\x00\x01\x00",
	} {
		var told []string
		for _, addr := range []string{s.fast, s.plain} {
			nc := dial(t, addr)
			write(t, nc, said)
			_ = nc.CloseWrite()
			got, err := io.ReadAll(nc)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%q: the connection stays open", said)
			}
			told = append(told, string(got))
		}
		if told[0] != told[1] || strings.Contains(said, "/") && !strings.Contains(told[0], "to an HTTPS server") {
			t.Errorf("%q: %q, net/http says %q", said, told[0], told[1])
		}
	}
}

// hello is half a ClientHello.
const hello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"

// TestHandshakes: viewers who do not end their handshakes are in nobody's way, have little time, and leave when the
// service does.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	s := overTLS.serve(t, handler(t), express.Options{HeaderTimeout: time.Hour})
	var slow []*net.TCPConn
	for n := range 40 {
		nc := dial(t, s.fast)
		write(t, nc, hello[:n%len(hello)])
		slow = append(slow, nc)
	}
	got := overTLS.converse(t, s.fast, "GET /length"+end)
	if len(got) != 1 || got[0].body != "hello" {
		t.Fatalf("beside others: %v", got)
	}
	if err := s.listener.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	brief := overTLS.serve(t, handler(t), express.Options{HeaderTimeout: 50 * time.Millisecond})
	for n := range 4 {
		nc := dial(t, brief.fast)
		write(t, nc, hello[:n])
		slow = append(slow, nc)
	}
	for n, nc := range slow {
		if _, err := io.Copy(io.Discard, nc); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("viewer %d stays", n)
		}
	}
}

// TestHandshakePanics: it costs its connection, and nobody else's.
func TestHandshakePanics(t *testing.T) {
	t.Parallel()
	config := overTLS.server()
	var asked atomic.Int64
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if asked.Add(1) == 1 {
			panic("a bug")
		}
		return nil, nil //nolint:nilnil // crypto/tls's way to say: this one
	}
	var log strings.Builder
	ln := listen(t)
	l := express.Listen(t.Context(), ln, express.Options{
		Takes: func(string) bool { return true }, Handler: handler(t), TLS: config,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	behind(t, l, handler(t))
	if got := overTLS.converse(t, ln.Addr().String(), "GET /length"+end); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := overTLS.converse(t, ln.Addr().String(), "GET /length"+end); len(got) != 1 || got[0].body != "hello" {
		t.Errorf("the next one: %v", got)
	}
	if err := l.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := log.String(); !strings.Contains(got, "a bug") {
		t.Errorf("log %s", got)
	}
}

// TestHandedOver: what net/http goes on with over TLS is cut off by its limits, not by those from before.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	const short = 500 * time.Millisecond // a response takes less
	eachWay(t, func(t *testing.T, w way) {
		began, give := make(chan context.Context, 1), make(chan string)
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api" {
				_, _ = io.WriteString(w, "at once")
				return
			}
			began <- r.Context()
			_, _ = io.WriteString(w, <-give)
		})
		s := w.serve(t, h, express.Options{
			WriteTimeout: short, StallTimeout: short,
		})
		nc := w.dial(t, s.fast)
		write(t, nc, "GET /x"+end+"GET /api HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		<-began
		<-time.After(2 * short)
		give <- "later"
		if got, err := io.ReadAll(nc); err != nil || !strings.HasSuffix(string(got), "later") {
			t.Errorf("%q, %v", got, err)
		}
	})
}
