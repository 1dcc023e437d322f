package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Writer writes to a TCP connection without telling the scheduler about each system call, as Reader reads. Deadlines
// and Close of the connection end its writes as they end the connection's own. One goroutine at a time may use it.
type Writer struct {
	nc  *net.TCPConn
	raw syscall.RawConn
	bad error // nothing can be written: why
	try func(fd uintptr) bool

	patience time.Duration // 0: for ever
	until    time.Time     // at the latest
	waits    bool          // this write has waited
	moved    bool          // the connection's deadline, since Patience

	rest  [2][]byte // what is to be written still
	flags int
	err   error

	send struct { // the stretch of a file
		try func(fd uintptr) bool
		fd  uintptr
		off int64
		n   int64
	}
}

// NewWriter returns the Writer of nc.
func NewWriter(nc *net.TCPConn) *Writer {
	w := &Writer{nc: nc}
	w.raw, w.bad = nc.SyscallConn()
	w.try, w.send.try = w.attempt, w.attemptFile
	return w
}

// Patience sets how long the other side may take nothing, up to a time which the connection's deadline is at. It gives
// whether that was moved since.
func (w *Writer) Patience(d time.Duration, until time.Time) (moved bool) {
	moved = w.moved
	w.patience, w.until, w.moved = d, until, false
	return moved
}

// wait is called before a write waits for room; taken: some of it went out.
func (w *Writer) wait(taken bool) {
	if w.patience <= 0 || w.waits && !taken {
		return
	}
	until := time.Now().Add(w.patience)
	if until.After(w.until) {
		until = w.until
	}
	w.waits, w.moved = true, true
	_ = w.nc.SetWriteDeadline(until) // a closed connection ends the write by itself
}

// Write writes a and then b, together.
func (w *Writer) Write(a, b []byte) error { return w.write(a, b, 0) }

// WriteMore writes what is about to be followed by more, so that the two share a packet.
func (w *Writer) WriteMore(a []byte) error { return w.write(a, nil, unix.MSG_MORE) }

func (w *Writer) write(a, b []byte, flags int) error {
	if w.bad != nil {
		return w.bad
	}
	w.rest, w.flags, w.err, w.waits = [2][]byte{a, b}, flags, nil, false
	err := w.raw.Write(w.try)
	w.rest = [2][]byte{}
	if err == nil {
		err = w.err
	}
	return err
}

// SendFile writes head and then n bytes of a file from off on, which go to the socket inside the kernel; sent is how
// many of these did. f must not be closed meanwhile; others may read it, or send it, at the same time.
func (w *Writer) SendFile(head []byte, f *os.File, off, n int64) (sent int64, err error) {
	if len(head) > 0 {
		if err = w.WriteMore(head); err != nil {
			return 0, err
		}
	}
	if w.bad != nil {
		return 0, w.bad
	}
	w.send.fd, w.send.off, w.send.n, w.err, w.waits = f.Fd(), off, n, nil, false
	err = w.raw.Write(w.send.try)
	if err == nil {
		err = w.err
	}
	return w.send.off - off, err
}

// mostFile is how many bytes of a file one system call sends.
const mostFile = 2 << 20

// attemptFile announces its system calls: the file may have to be read from the disk.
func (w *Writer) attemptFile(fd uintptr) bool {
	before := w.send.n
	for w.send.n > 0 {
		n, err := unix.Sendfile(int(fd), int(w.send.fd), &w.send.off, int(min(w.send.n, mostFile)))
		switch {
		case n > 0:
			w.send.n -= int64(n)
		case err == nil:
			w.err = io.ErrUnexpectedEOF // the file is shorter
			return true
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			w.wait(w.send.n < before)
			return false
		default:
			w.err = os.NewSyscallError("sendfile", err)
			return true
		}
	}
	return true
}

// most is how many bytes one system call copies: the goroutine can't be interrupted meanwhile.
const most = 256 << 10

func (w *Writer) attempt(fd uintptr) bool {
	before := len(w.rest[0]) + len(w.rest[1])
	for len(w.rest[0])+len(w.rest[1]) > 0 {
		var iov [2]unix.Iovec
		var msg unix.Msghdr
		total := 0
		for _, p := range w.rest {
			if p = p[:min(len(p), most-total)]; len(p) > 0 {
				v := &iov[msg.Iovlen]
				v.Base = unsafe.SliceData(p) //nolint:gosec // the same
				v.SetLen(len(p))
				msg.Iovlen++
				total += len(p)
			}
		}
		msg.Iov = &iov[0]
		n, _, errno := syscall.RawSyscall(syscall.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&msg)), uintptr(w.flags|unix.MSG_NOSIGNAL)) //nolint:gosec // what unix.SendmsgBuffers does, too
		switch errno {                                                                                                                //nolint:exhaustive // the others are failures
		case 0:
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			w.wait(len(w.rest[0])+len(w.rest[1]) < before)
			return false
		default:
			w.err = os.NewSyscallError("sendmsg", errno)
			return true
		}
		first := min(int(n), len(w.rest[0]))
		w.rest[0] = w.rest[0][first:]
		w.rest[1] = w.rest[1][int(n)-first:]
	}
	return true
}
