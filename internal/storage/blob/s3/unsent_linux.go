package s3

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// mostUnsent is how many bytes the kernel takes of a request before they can go. Without it what is said to have gone
// may wait in its buffers for longer than a response may take, where the connection is slow.
const mostUnsent = 128 << 10

// keepFewUnsent prepares a connection.
func keepFewUnsent(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, mostUnsent) // it goes without
	})
}
