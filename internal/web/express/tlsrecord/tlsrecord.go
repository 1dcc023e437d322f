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
func (r *Conn) Whole() *socket.Counted { return r.counted }

// spares are the buffers of records that are held.
var spares = sync.Pool{New: func() any { return new([Gathered]byte) }} //nolint:gochecknoglobals // used again

// Serving has the connection call before each time it is about to wait, ask late whether to go on when a deadline is
// over, and break off writes that stall. Whoever reads the connection calls it.
func (r *Conn) Serving(before func(), late func() bool, limit, stall time.Duration) {
	_ = r.SetDeadline(time.Time{}) // a closed connection says so by itself
	r.before, r.late = before, late
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit, r.stall = limit, stall
}

// Unhook has nobody called any more. Whoever reads the connection calls it.
func (r *Conn) Unhook() { r.before, r.late = nil, nil }

// Patience is a socket.Writer's, for who moves the deadlines of a connection himself.
func (r *Conn) Patience(d time.Duration, until time.Time) (moved bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Patience(d, until)
}

// Read implements net.Conn.
func (r *Conn) Read(p []byte) (int, error) {
	for {
		if r.before != nil {
			r.before()
		}
		n, err := r.in.Read(p)
		if err != nil && r.late != nil && errors.Is(err, os.ErrDeadlineExceeded) && r.late() {
			continue
		}
		return n, err
	}
}

// Write implements net.Conn.
func (r *Conn) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return 0, r.failed
	}
	if r.held && len(r.buf)+len(p) <= Gathered {
		r.buf = append(r.buf, p...)
		return len(p), nil
	}
	if err := r.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Hold begins to gather what is written, Release sends it.
func (r *Conn) Hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spare, _ = spares.Get().(*[Gathered]byte)
	r.held, r.buf = true, r.spare[:0]
}

// Release ends what Hold began.
func (r *Conn) Release() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.failed
	if err == nil && len(r.buf) > 0 {
		err = r.send(nil)
	}
	spares.Put(r.spare)
	r.held, r.buf, r.spare = false, nil, nil
	return err
}

// send sends what was gathered, and p. It needs the lock.
func (r *Conn) send(p []byte) error {
	if r.stall > 0 {
		r.patience()
	}
	r.failed = r.out.Write(r.buf, p)
	if r.held {
		r.buf = r.buf[:0]
	}
	return r.failed
}

// patience moves the deadline for writing only when it matters, because each move costs a timer.
func (r *Conn) patience() {
	now := time.Now()
	fresh := r.until.Sub(now) > r.limit-r.limit/8
	if !fresh {
		r.until = now.Add(r.limit)
	}
	if moved := r.out.Patience(r.stall, r.until); moved || !fresh {
		_ = r.SetWriteDeadline(r.until) // a closed connection says so by itself
	}
}
