package s3

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFewUnsent: what is said to have gone is not much more than what has.
func TestFewUnsent(t *testing.T) {
	t.Parallel()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	transport := newTransport(stallTime)
	defer transport.CloseIdleConnections()
	c, err := transport.DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	near, _ := c.(*pressed)
	tcp, _ := near.Conn.(*net.TCPConn)
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	if cerr := raw.Control(func(fd uintptr) {
		most, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT)
	}); cerr != nil || err != nil || most != mostUnsent {
		t.Errorf("%d bytes: %v, %v", most, cerr, err)
	}
}
