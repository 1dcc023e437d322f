//go:build !linux

package socket

import (
	"io"
	"net"
	"os"
	"time"
)

// Writer writes to a TCP connection.
type Writer struct{ nc *net.TCPConn }

// NewWriter returns the Writer of nc.
func NewWriter(nc *net.TCPConn) *Writer { return &Writer{nc} }

// Patience sets how long the other side may take nothing; here the connection's deadline alone counts.
func (w *Writer) Patience(time.Duration, time.Time) (moved bool) { return false }

// Write writes a and then b, together.
func (w *Writer) Write(a, b []byte) error {
	both := net.Buffers{a, b}
	_, err := both.WriteTo(w.nc)
	return err
}

// WriteMore writes what is about to be followed by more.
func (w *Writer) WriteMore(a []byte) error { return w.Write(a, nil) }

// SendFile writes head and then n bytes of a file from off on; sent is how many of these were.
func (w *Writer) SendFile(head []byte, f *os.File, off, n int64) (sent int64, err error) {
	if err := w.WriteMore(head); err != nil {
		return 0, err
	}
	sent, err = io.Copy(w.nc, io.NewSectionReader(f, off, n))
	if err == nil && sent < n {
		err = io.ErrUnexpectedEOF
	}
	return sent, err
}
