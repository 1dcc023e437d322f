package socket_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"millrace/internal/socket"
)

// TestWriter writes what the other side reads, whatever its size, and waits for room.
func TestWriter(t *testing.T) {
	t.Parallel()
	ours, theirs := pair(t)
	out := socket.NewWriter(ours)
	var want []byte
	wrote := make(chan error, 1)
	sizes := [][2]int{{0, 0}, {1, 0}, {0, 1}, {500, 3000}, {300000, 1}, {1, 3 << 20}, {300000, 5 << 20}, {10, 10}}
	for i, size := range sizes {
		want = append(want, bytes.Repeat([]byte{byte('a' + i)}, size[0])...)
		want = append(want, bytes.Repeat([]byte{byte('A' + i)}, size[1])...)
		want = append(want, "more"...)
	}
	go func() {
		for i, size := range sizes {
			if err := out.Write(bytes.Repeat([]byte{byte('a' + i)}, size[0]), bytes.Repeat([]byte{byte('A' + i)}, size[1])); err != nil {
				wrote <- err
				return
			}
			if err := out.WriteMore([]byte("more")); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- ours.CloseWrite()
	}()
	got, err := io.ReadAll(theirs)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

// TestWriterEnds where the connection's own writes end.
func TestWriterEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   func(ours, theirs *net.TCPConn) error
		want error
	}{
		"deadline":      {func(o, _ *net.TCPConn) error { return o.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)) }, os.ErrDeadlineExceeded},
		"past deadline": {func(o, _ *net.TCPConn) error { return o.SetWriteDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		"closed":        {func(o, _ *net.TCPConn) error { return o.Close() }, net.ErrClosed},
		"reset":         {func(_, c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) }, syscall.EPIPE},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := pair(t)
			out := socket.NewWriter(ours)
			if err := tt.do(ours, theirs); err != nil {
				t.Fatal(err)
			}
			data := make([]byte, 16<<20)
			err := out.Write(data, data)
			if err == nil || errors.Is(err, syscall.ECONNRESET) { // said once, by whatever comes first
				err = out.Write(data, data)
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}
