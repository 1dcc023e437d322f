package socket

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// WriteMore writes what is about to be followed by more, so that the two share a packet.
func WriteMore(nc *net.TCPConn, b []byte) error {
	raw, err := nc.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for len(b) > 0 {
			n, err := unix.SendmsgN(int(fd), b, nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if errors.Is(err, unix.EAGAIN) {
				return false
			}
			if err != nil {
				failed = err
				return true
			}
			b = b[n:]
		}
		return true
	})
	if err == nil {
		err = failed
	}
	return err
}
