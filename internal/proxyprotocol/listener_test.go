package proxyprotocol

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pires/go-proxyproto"

	"millrace/internal/leaktest"
	"millrace/internal/socket"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// listen returns a Listener on this machine.
func listen(t *testing.T, o Options, budget *socket.Budget) *Listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if o.Trusts == nil {
		o.Trusts = netip.Addr.IsLoopback
	}
	l := Listen(t.Context(), socket.Listen(inner, socket.ListenOptions{Name: "test", Budget: budget}), o)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func dial(t *testing.T, l *Listener) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	tcp, _ := c.(*net.TCPConn)
	return tcp
}

// header is what the library writes for a client.
func header(t *testing.T, version byte, client string, more func(*proxyproto.Header)) string {
	t.Helper()
	from := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(client))
	to := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:1935"))
	if from.IP.To4() == nil {
		to = net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[2001:db8::1]:1935"))
	}
	h := proxyproto.HeaderProxyFromAddrs(version, from, to)
	if more != nil {
		more(h)
	}
	text, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const self = "self" // the connection's own address

// TestListener sends what proxies and others begin with, as a whole and byte by byte: who is passed on is known, and
// all that comes behind the header is there to be read.
func TestListener(t *testing.T) {
	t.Parallel()
	tlv := func(h *proxyproto.Header) {
		long := proxyproto.TLV{Type: proxyproto.PP2_TYPE_AUTHORITY, Value: bytes.Repeat([]byte("x"), 2000)}
		if err := h.SetTLVs([]proxyproto.TLV{long}); err != nil {
			t.Fatal(err)
		}
	}
	local := func(h *proxyproto.Header) { h.Command = proxyproto.LOCAL }
	for name, tt := range map[string]struct{ header, want string }{
		"version 1":            {header(t, 1, "203.0.113.7:4711", nil), "203.0.113.7:4711"},
		"version 1, IPv6":      {header(t, 1, "[2001:db8::7]:4711", nil), "[2001:db8::7]:4711"},
		"version 1, unknown":   {"PROXY UNKNOWN\r\n", self},
		"version 2":            {header(t, 2, "203.0.113.7:4711", nil), "203.0.113.7:4711"},
		"version 2, IPv6":      {header(t, 2, "[2001:db8::7]:4711", nil), "[2001:db8::7]:4711"},
		"version 2, with more": {header(t, 2, "203.0.113.7:4711", tlv), "203.0.113.7:4711"},
		"version 2, local":     {header(t, 2, "203.0.113.7:4711", local), self},
		"none":                 {"", self},
	} {
		for _, behind := range []string{
			"POST / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n", "\x16\x03\x01", "\x03\x00\x00",
		} {
			for how, pieces := range map[string]func(io.Reader) io.Reader{
				"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
			} {
				t.Run(name+", "+how+" "+behind[:3], func(t *testing.T) {
					t.Parallel()
					l := listen(t, Options{}, nil)
					c := dial(t, l)
					in := struct{ io.Reader }{pieces(strings.NewReader(tt.header + behind))}
					if _, err := io.Copy(struct{ io.Writer }{c}, in); err != nil {
						t.Fatal(err)
					}
					want := tt.want
					if want == self {
						want = c.LocalAddr().String()
					}
					accepted(t, l, want, behind)
				})
			}
		}
	}
}

// accepted accepts a connection of this client, which goes on with these bytes.
func accepted(t *testing.T, l *Listener, client, behind string) {
	t.Helper()
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	got := make([]byte, len(behind))
	if _, err := io.ReadFull(nc, got); err != nil || string(got) != behind {
		t.Errorf("behind the header came %q, %v", got, err)
	}
	if nc.RemoteAddr().String() != client {
		t.Errorf("it comes from %s, want %s", nc.RemoteAddr(), client)
	}
	if counted, ok := nc.(*socket.Counted); !ok || counted.RemoteAddr().String() != client {
		t.Errorf("a %T comes", nc)
	}
}

// TestStranger: a header of somebody who is not trusted is not believed, and not read.
func TestStranger(t *testing.T) {
	t.Parallel()
	l := listen(t, Options{Trusts: func(netip.Addr) bool { return false }}, nil)
	c := dial(t, l)
	text := header(t, 2, "203.0.113.7:4711", nil)
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	accepted(t, l, c.LocalAddr().String(), text)
}

// TestRefused: what begins like a header and is none is closed; so is who says nothing for too long, and who is one too
// many.
func TestRefused(t *testing.T) {
	t.Parallel()
	full := socket.NewBudget(10, 1)
	for name, tt := range map[string]struct {
		text   string
		budget *socket.Budget
	}{
		"a line without end":           {"PROXY TCP4 " + strings.Repeat("1", 200), nil},
		"no address":                   {"PROXY TCP4 here there 1 2\r\n", nil},
		"a long header":                {header(t, 2, "203.0.113.7:1", nil)[:14] + "\xff\xff", nil},
		"a family that is none":        {"\r\n\r\n\x00\r\nQUIT\n\x21\x13\x00\x0c" + strings.Repeat("\x00", 12), nil},
		"a version that is none":       {"\r\n\r\n\x00\r\nQUIT\n\x31\x11\x00\x0c" + strings.Repeat("\x00", 12), nil},
		"a header that does not go on": {"PROX", nil},
		"nothing":                      {"", nil},
		"one too many":                 {header(t, 2, "203.0.113.7:1", nil), full},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{}
			if tt.text == "" || tt.text == "PROX" {
				o.Timeout = 50 * time.Millisecond
			}
			l := listen(t, o, tt.budget)
			if tt.budget != nil { // one of this client is there, and at work
				first := dial(t, l)
				if _, err := io.WriteString(first, tt.text); err != nil {
					t.Fatal(err)
				}
				nc, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = nc.Close() })
				nc.(*socket.Counted).Busy()
			}
			c := dial(t, l)
			if _, err := io.WriteString(c, tt.text); err != nil {
				t.Fatal(err)
			}
			if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
}

// TestWaits: one who says nothing delays nobody, counts against the budget, and is closed with the listener.
func TestWaits(t *testing.T) {
	t.Parallel()
	budget := socket.NewBudget(10, 10)
	l := listen(t, Options{Timeout: time.Hour}, budget)
	silent := dial(t, l)
	c := dial(t, l)
	if _, err := io.WriteString(c, "GET "); err != nil {
		t.Fatal(err)
	}
	accepted(t, l, c.LocalAddr().String(), "GET ")
	if budget.Open() != 1 {
		t.Errorf("%d connections are open, one waits", budget.Open())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("it was not closed")
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	if budget.Open() != 0 {
		t.Errorf("%d connections are open", budget.Open())
	}
}

// TestBudget: a connection counts for its client, not for the proxy.
func TestBudget(t *testing.T) {
	t.Parallel()
	budget := socket.NewBudget(100, 3)
	l := listen(t, Options{}, budget)
	var open []net.Conn
	for n := range 6 { // twice as many as one address may have
		c := dial(t, l)
		client := netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(n % 2)}), 1).String()
		if _, err := io.WriteString(c, header(t, 2, client, nil)); err != nil {
			t.Fatal(err)
		}
		nc, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		nc.(*socket.Counted).Busy()
		open = append(open, nc)
	}
	for _, nc := range slices.Backward(open) {
		if err := nc.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if budget.Open() != 0 {
		t.Errorf("%d connections are open", budget.Open())
	}
}

// FuzzMeasure: however a connection begins, it is known after a bounded number of bytes how long its header is, and the
// library reads it all.
func FuzzMeasure(f *testing.F) {
	f.Add([]byte("PROXY TCP4 203.0.113.7 192.0.2.1 4711 1935\r\nGET "))
	f.Add([]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x07\xc0\x00\x02\x01\x12\x67\x07\x8f\x03"))
	f.Add([]byte("PRI * HTTP/2.0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		length, enough, err := measure(b)
		if !enough && len(b) >= most || length > most || enough && err == nil && length > len(b) {
			t.Fatalf("%d of %d bytes, enough: %t, %v", length, len(b), enough, err)
		}
		for n := range b { // what is known once does not change with more
			if early, known, bad := measure(b[:n]); known && (early != length || (bad == nil) != (err == nil)) {
				t.Fatalf("%d bytes: %d, %v; all: %d, %v", n, early, bad, length, err)
			}
		}
	})
}
