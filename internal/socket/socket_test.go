package socket_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"millrace/internal/socket"
)

// pair is a TCP connection's two ends.
func pair(t *testing.T) (ours, theirs *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return server.(*net.TCPConn), client.(*net.TCPConn)
}

// TestReaderReadsLikeTheConnection holds the short way of reading against the connection's own.
func TestReaderReadsLikeTheConnection(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   func(ours, theirs *net.TCPConn) error
		data string
		want error
	}{
		"data": {
			func(_, c *net.TCPConn) error { _, err := c.Write([]byte("hello")); return err }, "hello", nil,
		},
		"end": {func(_, c *net.TCPConn) error { return c.Close() }, "", io.EOF},
		"deadline": {
			func(o, _ *net.TCPConn) error { return o.SetReadDeadline(time.Now().Add(10 * time.Millisecond)) }, "",
			os.ErrDeadlineExceeded,
		},
		"past deadline": {
			func(o, _ *net.TCPConn) error { return o.SetReadDeadline(time.Unix(1, 0)) }, "", os.ErrDeadlineExceeded,
		},
		"closed": {func(o, _ *net.TCPConn) error { return o.Close() }, "", net.ErrClosed},
		"reset": {
			func(_, c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) }, "", syscall.ECONNRESET,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := pair(t)
			in := socket.Reader(ours)
			if err := tt.do(ours, theirs); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 16)
			n, err := in.Read(buf)
			if string(buf[:n]) != tt.data || !errors.Is(err, tt.want) {
				t.Errorf("read %q, %v; want %q, %v", buf[:n], err, tt.data, tt.want)
			}
		})
	}
}

// TestReaderWaits reads what comes later, and is ended by Close while it waits.
func TestReaderWaits(t *testing.T) {
	t.Parallel()
	ours, theirs := pair(t)
	in := socket.Reader(ours)
	got := make(chan error, 1)
	buf := make([]byte, 4)
	go func() {
		_, err := io.ReadFull(in, buf)
		got <- err
		_, err = in.Read(buf)
		got <- err
	}()
	for _, s := range []string{"a", "bc", "d"} {
		if _, err := theirs.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-got; err != nil || string(buf) != "abcd" {
		t.Fatalf("read %q, %v", buf, err)
	}
	ours.Close()
	if err := <-got; !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed while it waits: %v", err)
	}
}
