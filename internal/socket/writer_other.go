//go:build !linux

package socket

import "net"

// Writer writes to a TCP connection.
type Writer struct{ nc *net.TCPConn }

// NewWriter returns the Writer of nc.
func NewWriter(nc *net.TCPConn) *Writer { return &Writer{nc} }

// Write writes a and then b, together.
func (w *Writer) Write(a, b []byte) error {
	both := net.Buffers{a, b}
	_, err := both.WriteTo(w.nc)
	return err
}

// WriteMore writes what is about to be followed by more.
func (w *Writer) WriteMore(a []byte) error { return w.Write(a, nil) }
