package socket

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Conn is a TCP connection of a Poller; to its users it is as net's own.
type Conn struct {
	poller        *Poller
	counted       *Counted
	key           uint64 // for the poller
	local, remote net.Addr
	in, out       half

	mu     sync.Mutex // of what follows and of the halves' deadlines; held while fd is used, which takes microseconds
	fd     int
	closed bool
	armed  bool // the poller looks for room to write, too
}

// half is one direction.
type half struct {
	turn   sync.Mutex    // whose turn it is to read or to write
	signal chan struct{} // one token: something may have changed
	dry    bool          // in: the last read took all there was; the one whose turn it is knows

	at    time.Time // deadline; zero: none
	timer *time.Timer
	past  bool // the deadline is over
}

func (h *half) wake() {
	select {
	case h.signal <- struct{}{}:
	default:
	}
}

// blocked says why nothing can be done; c.mu is held.
func (c *Conn) blocked(h *half) error {
	if c.closed {
		return net.ErrClosed
	}
	if h.past {
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (c *Conn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	c.in.turn.Lock()
	defer c.in.turn.Unlock()
	for look := !c.in.dry; ; look = true {
		n, wait, err := c.receive(p, look)
		switch {
		case wait:
			<-c.in.signal
		case err != nil:
			return 0, c.fail("read", err)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// receive reads what is there; without look it is known that nothing is.
func (c *Conn) receive(p []byte, look bool) (n int, wait bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.blocked(&c.in); err != nil || len(p) == 0 {
		return 0, false, err
	}
	for look {
		to := unsafe.Pointer(unsafe.SliceData(p)) //nolint:gosec // what syscall.Read does, too
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(c.fd), uintptr(to), uintptr(min(len(p), most)))
		switch errno { //nolint:exhaustive // the others are failures
		case 0:
			c.in.dry = n > 0 && int(n) < len(p) // a reader that has seen the end shall see it again
			return int(n), false, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			look = false
		default:
			c.in.dry = false
			return 0, false, os.NewSyscallError("read", errno)
		}
	}
	return 0, true, nil
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	c.out.turn.Lock()
	defer c.out.turn.Unlock()
	for done := 0; ; {
		n, wait, err := c.send(p[done:])
		done += n
		switch {
		case wait:
			<-c.out.signal
		case err != nil:
			return done, c.fail("write", err)
		default:
			return done, nil
		}
	}
}

// send writes what there is room for. When that is not all, the poller says when to go on.
func (c *Conn) send(p []byte) (done int, wait bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.blocked(&c.out); err != nil {
		return 0, false, err
	}
	for len(p) > done {
		rest := p[done:]
		from := unsafe.Pointer(unsafe.SliceData(rest)) //nolint:gosec // what syscall.Write does, too
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(c.fd), uintptr(from),
			uintptr(min(len(rest), most)), unix.MSG_NOSIGNAL, 0, 0)
		switch errno { //nolint:exhaustive // the others are failures
		case 0:
			done += int(n)
		case syscall.EINTR:
		case syscall.EAGAIN:
			err := c.arm(true)
			return done, err == nil, err
		default:
			return done, false, os.NewSyscallError("write", errno)
		}
	}
	return done, false, c.arm(false)
}

// arm tells the poller whether somebody waits for room to write; c.mu is held.
func (c *Conn) arm(on bool) error {
	if c.armed == on {
		return nil
	}
	events := uint32(readable)
	if on {
		events |= unix.EPOLLOUT
	}
	if err := c.poller.control(unix.EPOLL_CTL_MOD, c.fd, events, c.key); err != nil {
		return err
	}
	c.armed = on
	return nil
}

// Close implements net.Conn: it ends the reads and writes that wait.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.fail("close", net.ErrClosed)
	}
	c.closed = true
	c.poller.forget(c)
	defer c.counted.leave()
	// The descriptor is the socket's only one, and the poller forgets it with the socket.
	err := os.NewSyscallError("close", unix.Close(c.fd))
	for _, h := range []*half{&c.in, &c.out} {
		if h.timer != nil {
			h.timer.Stop()
		}
		h.wake()
	}
	if err != nil {
		return c.fail("close", err)
	}
	return nil
}

// Busy and Idle are those of the Counted that it was.
func (c *Conn) Busy() { c.counted.Busy() }

// Idle says that the connection may be closed in favour of another.
func (c *Conn) Idle() { c.counted.Idle() }

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error { return c.limit(t, &c.in, &c.out) }

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.limit(t, &c.in) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.limit(t, &c.out) }

func (c *Conn) limit(t time.Time, halves ...*half) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.fail("set", net.ErrClosed)
	}
	for _, h := range halves {
		h.at, h.past = t, false
		left := time.Until(t)
		switch {
		case t.IsZero():
			if h.timer != nil {
				h.timer.Stop()
			}
		case left <= 0:
			h.past = true
			h.wake()
		case h.timer == nil:
			h.timer = time.AfterFunc(left, func() { c.expire(h) })
		default:
			h.timer.Reset(left)
		}
	}
	return nil
}

// expire is what a timer does; the deadline may have been moved meanwhile.
func (c *Conn) expire(h *half) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && !h.at.IsZero() && !time.Now().Before(h.at) {
		h.past = true
		h.wake()
	}
}
