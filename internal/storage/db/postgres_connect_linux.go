package db

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// untaken has a connection end when the other side does not take what was sent.
func untaken(network, _ string, c syscall.RawConn) (err error) {
	if network == "unix" {
		return nil
	}
	failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(takenWithin.Milliseconds()))
	})
	return errors.Join(failed, err)
}
