package socket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// patience is how many rounds in a row find nothing before the poller stops looking by itself and lets the kernel
	// wake it.
	patience = 16
	atOnce   = 256 // sockets that one look tells of; the others come with the next round

	readable = unix.EPOLLIN | unix.EPOLLRDHUP
)

// Poller waits for many TCP connections together. The runtime's own poller wakes the process for each message of each
// peer; with many peers sending small ones the waking is more work than the reading. A Poller looks at its connections
// once per round, so that all that came meanwhile is read in one go: up to a round later. While nobody sends it makes
// no rounds and costs nothing.
type Poller struct {
	round time.Duration
	epoll int
	alarm int // an eventfd: wakes Run where it waits for the kernel
	begun chan struct{}
	begin sync.Once

	mu     sync.Mutex
	closed bool
	last   uint64
	conns  map[uint64]*Conn
}

// NewPoller makes a Poller whose connections are looked at once per round. Run must run until Close.
func NewPoller(round time.Duration) (*Poller, error) {
	p := &Poller{round: round, begun: make(chan struct{}), conns: map[uint64]*Conn{}}
	var err error
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make poller: %w", os.NewSyscallError("epoll_create1", err))
	}
	if p.alarm, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		_ = unix.Close(p.epoll)
		return nil, fmt.Errorf("make poller: %w", os.NewSyscallError("eventfd", err))
	}
	if err = p.control(unix.EPOLL_CTL_ADD, p.alarm, unix.EPOLLIN, 0); err != nil {
		_ = unix.Close(p.epoll)
		_ = unix.Close(p.alarm)
		return nil, fmt.Errorf("make poller: %w", err)
	}
	return p, nil
}

// Adopt makes nc one of the poller's connections. It takes nc over: whatever comes of it, nc itself is not to be used
// again. What is no TCP connection is given back as it is.
func (p *Poller) Adopt(nc net.Conn) (net.Conn, error) {
	counted, ok := Count(nc)
	if !ok {
		return nc, nil
	}
	tcp := counted.TCPConn
	// The runtime forgets a socket only with its descriptor, so we go on with another one of the same socket.
	fd, err := duplicate(tcp)
	local, remote := tcp.LocalAddr(), counted.RemoteAddr()
	if err = errors.Join(err, tcp.Close()); err != nil {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		counted.leave()
		return nil, fmt.Errorf("adopt connection: %w", err)
	}
	c := &Conn{poller: p, counted: counted, fd: fd, local: local, remote: remote}
	c.in.signal, c.out.signal = make(chan struct{}, 1), make(chan struct{}, 1)
	p.mu.Lock()
	p.last++
	c.key = p.last
	p.conns[c.key] = c
	p.mu.Unlock()
	if err := p.control(unix.EPOLL_CTL_ADD, fd, readable, c.key); err != nil {
		p.forget(c)
		_ = unix.Close(fd)
		counted.leave()
		return nil, fmt.Errorf("adopt connection: %w", err)
	}
	if !counted.pass(c) {
		return nil, fmt.Errorf("adopt connection: another took its place: %w", c.Close())
	}
	p.begin.Do(func() { close(p.begun) })
	return c, nil
}

// duplicate gives a second descriptor of a socket, -1 with an error.
func duplicate(tcp *net.TCPConn) (fd int, err error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd = -1
	var dup error
	err = raw.Control(func(old uintptr) { fd, dup = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(err, os.NewSyscallError("fcntl", dup))
}

// control changes what is looked for at fd. The sockets stay ready as long as there is something to be read, so that no
// wake-up can be missed.
func (p *Poller) control(op, fd int, events uint32, key uint64) error {
	event := unix.EpollEvent{Events: events, Fd: int32(uint32(key)), Pad: int32(uint32(key >> 32))}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.epoll, op, fd, &event))
}

func (p *Poller) forget(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c.key)
}

// Close ends Run. All connections have been closed before.
func (p *Poller) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock() // Run lets go of the alarm's descriptor as soon as it sees that p is closed
	if p.closed {
		return nil
	}
	p.closed = true
	p.begin.Do(func() { close(p.begun) })
	_, err := unix.Write(p.alarm, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	return os.NewSyscallError("write", err)
}

// Run looks at the connections until Close.
func (p *Poller) Run() error {
	<-p.begun // nobody has connected: there is not even a thread that waits
	defer p.letGo()
	events := make([]unix.EpollEvent, atOnce)
	next := time.NewTimer(p.round)
	defer next.Stop()
	for empty := 0; ; {
		n, err := p.look(events, empty >= patience)
		if err != nil {
			return err
		}
		next.Reset(p.round) // before anybody is woken: a thread that finds nothing to do is told when to come back
		if empty++; n > 0 {
			empty = 0
		}
		if p.wake(events[:n]) {
			return nil
		}
		<-next.C
	}
}

func (p *Poller) letGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = unix.Close(p.epoll)
	_ = unix.Close(p.alarm)
}

// look asks who is ready, and waits for somebody to be.
func (p *Poller) look(events []unix.EpollEvent, wait bool) (int, error) {
	if wait {
		n, err := unix.EpollWait(p.epoll, events, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 0, os.NewSyscallError("epoll_wait", err)
		}
		return max(n, 0), nil
	}
	// It does not wait, so the scheduler need not hear of it.
	first := unsafe.Pointer(unsafe.SliceData(events)) //nolint:gosec // what unix.EpollWait does, too
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(first), uintptr(len(events)),
		0, 0, 0)
	if errno != 0 && errno != syscall.EINTR {
		return 0, os.NewSyscallError("epoll_pwait", errno)
	}
	if errno != 0 {
		return 0, nil //nolint:nilerr // what interrupts is no failure
	}
	return int(n), nil
}

// wake lets those go on who are ready. It reports whether the poller is closed.
func (p *Poller) wake(events []unix.EpollEvent) (closed bool) {
	const broken = unix.EPOLLERR | unix.EPOLLHUP
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range events {
		e := &events[i]
		c := p.conns[uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32]
		if c == nil { // closed in this very moment, or the alarm
			continue
		}
		if e.Events&^unix.EPOLLOUT != 0 {
			c.in.wake()
		}
		if e.Events&(unix.EPOLLOUT|broken) != 0 {
			c.out.wake()
		}
	}
	return p.closed
}
