// Package tlsrecord collects the records that crypto/tls writes one by one and sends them with one system call. It must
// never know what is in them, and starts no goroutine.
package tlsrecord

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"millrace/internal/socket"
)

// Gathered is how many bytes of records go out with one system call.
const Gathered = 66 << 10

// Gather returns a listener for a TLS listener to stand on, whose connections are Conns.
func Gather(inner net.Listener) net.Listener { return listener{inner} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	counted, ok := socket.Count(nc)
	if !ok {
		return nc, nil
	}
	return New(counted), nil
}

// Conn is a connection beneath TLS. Until something is set, with the handshake, it is as any other.
type Conn struct {
	net.Conn

	counted *socket.Counted // nil: it counts nowhere
	in      io.Reader
	out     Sender

	before func()      // what is to be done before the socket is read, which may wait; nil: nothing
	late   func() bool // whether to read on though the deadline is over

	mu     sync.Mutex // of what follows; TLS may answer to a key update while others write
	held   bool
	buf    []byte // of spare, while held
	spare  *[Gathered]byte
	limit  time.Duration // for a write
	stall  time.Duration // while the client takes nothing of it
	until  time.Time     // the connection's deadline for writing
	failed error
}

// Sender is a socket.Writer.
type Sender interface {
	Write(a, b []byte) error
	Patience(d time.Duration, until time.Time) (moved bool)
}

// New returns the Conn on a TCP connection.
func New(nc *socket.Counted) *Conn {
	c := Over(nc, socket.Reader(nc.TCPConn), socket.NewWriter(nc.TCPConn))
	c.counted = nc
	return c
}

// Over returns a Conn that reads from in and writes to out what is said on nc.
func Over(nc net.Conn, in io.Reader, out Sender) *Conn { return &Conn{Conn: nc, in: in, out: out} }

// Whole is the connection as it counts against its budget.
func (c *Conn) Whole() *socket.Counted { return c.counted }

// spares are the buffers of records that are held.
var spares = sync.Pool{New: func() any { return new([Gathered]byte) }} //nolint:gochecknoglobals // used again

// Serving has the connection call before each time it is about to wait, ask late whether to go on when a deadline is
// over, and break off writes that stall. Whoever reads the connection calls it.
func (c *Conn) Serving(before func(), late func() bool, limit, stall time.Duration) {
	_ = c.SetDeadline(time.Time{}) // a closed connection says so by itself
	c.before, c.late = before, late
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit, c.stall = limit, stall
}

// Unhook has nobody called any more. Whoever reads the connection calls it.
func (c *Conn) Unhook() { c.before, c.late = nil, nil }

// Patience is a socket.Writer's, for who moves the deadlines of a connection himself.
func (c *Conn) Patience(d time.Duration, until time.Time) (moved bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Patience(d, until)
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	for {
		if c.before != nil {
			c.before()
		}
		n, err := c.in.Read(p)
		if err != nil && c.late != nil && errors.Is(err, os.ErrDeadlineExceeded) && c.late() {
			continue
		}
		return n, err
	}
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil {
		return 0, c.failed
	}
	if c.held && len(c.buf)+len(p) <= Gathered {
		c.buf = append(c.buf, p...)
		return len(p), nil
	}
	if err := c.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Hold begins to gather what is written, Release sends it.
func (c *Conn) Hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare, _ = spares.Get().(*[Gathered]byte)
	c.held, c.buf = true, c.spare[:0]
}

// Release ends what Hold began.
func (c *Conn) Release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.failed
	if err == nil && len(c.buf) > 0 {
		err = c.send(nil)
	}
	spares.Put(c.spare)
	c.held, c.buf, c.spare = false, nil, nil
	return err
}

// send sends what was gathered, and p. It needs the lock.
func (c *Conn) send(p []byte) error {
	if c.stall > 0 {
		c.patience()
	}
	c.failed = c.out.Write(c.buf, p)
	if c.held {
		c.buf = c.buf[:0]
	}
	return c.failed
}

// patience moves the deadline for writing only when it matters, because each move costs a timer.
func (c *Conn) patience() {
	now := time.Now()
	fresh := c.until.Sub(now) > c.limit-c.limit/8
	if !fresh {
		c.until = now.Add(c.limit)
	}
	if moved := c.out.Patience(c.stall, c.until); moved || !fresh {
		_ = c.SetWriteDeadline(c.until) // a closed connection says so by itself
	}
}
