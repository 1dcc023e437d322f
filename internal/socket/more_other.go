//go:build !linux

package socket

import "net"

// WriteMore writes what is about to be followed by more.
func WriteMore(nc *net.TCPConn, b []byte) error {
	_, err := nc.Write(b)
	return err
}
