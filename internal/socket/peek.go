//go:build unix

package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Peek waits until enough reports true for the bytes that are to be read next from tcp, which stay there, and returns
// how many p has of them: at most as many as it has room for. It ends with io.EOF where the peer has ended before, and
// with tcp's read deadline.
func Peek(tcp *net.TCPConn, p []byte, enough func(have []byte) bool) (n int, err error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		n, failed = peek(int(fd), p)
		if errors.Is(failed, syscall.EAGAIN) {
			return false
		}
		return failed != nil || enough(p[:n])
	})
	return n, errors.Join(err, failed)
}

func peek(fd int, p []byte) (int, error) {
	for {
		switch n, _, err := syscall.Recvfrom(fd, p, syscall.MSG_PEEK); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, os.NewSyscallError("recvfrom", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}
