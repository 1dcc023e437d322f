package rtmp

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// socket reads from a TCP connection without telling the scheduler about each system call. A read of a socket that never blocks is over
// within microseconds; announcing it wakes the runtime's watchdog thread each time the process was idle before, and with many
// encoders sending small messages that is more work than the reading: about a sixth of what a stream costs.
type socket struct {
	raw syscall.RawConn
	try func(fd uintptr) bool // reads into p; false: nothing is there yet

	p   []byte
	n   int
	err error
}

// reader gives the way to read from nc that costs least.
func reader(nc net.Conn) io.Reader {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nc
	}
	s := &socket{raw: raw}
	s.try = s.attempt
	return s
}

func (s *socket) attempt(fd uintptr) bool {
	for {
		to := unsafe.Pointer(unsafe.SliceData(s.p)) //nolint:gosec // what syscall.Read does, too
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(to), uintptr(len(s.p)))
		if errno == syscall.EINTR {
			continue
		}
		if errno == syscall.EAGAIN {
			return false
		}
		s.n = int(n)
		if errno != 0 {
			s.n, s.err = 0, os.NewSyscallError("read", errno)
		}
		return true
	}
}

// Read implements io.Reader; deadlines and Close end it as they end net.Conn's own.
func (s *socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s.p, s.n, s.err = p, 0, nil
	err := s.raw.Read(s.try)
	s.p = nil
	switch {
	case err != nil:
		return 0, err
	case s.err != nil:
		return 0, s.err
	case s.n == 0:
		return 0, io.EOF
	}
	return s.n, nil
}
