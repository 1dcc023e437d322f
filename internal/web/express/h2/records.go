package h2

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"millrace/internal/socket"
)

// gathered is how many bytes of records go out with one system call.
const gathered = 66 << 10

// Gather returns a listener for a TLS listener to stand on: the connections that it gives can gather the records that
// TLS writes one by one.
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
	return &records{
		Conn: counted, counted: counted,
		in: socket.Reader(counted.TCPConn), out: socket.NewWriter(counted.TCPConn),
	}, nil
}

// records is a connection beneath TLS. Until serving begins, with the handshake, it is as any other.
type records struct {
	net.Conn

	counted *socket.Counted // nil: it counts nowhere
	in      io.Reader
	out     sender

	before func()      // what is to be done before the socket is read, which may wait; nil: nothing
	late   func() bool // whether to read on though the deadline is over

	mu     sync.Mutex // of what follows; TLS may answer to a key update while others write
	held   bool
	buf    []byte // of spare, while held
	spare  *[gathered]byte
	limit  time.Duration // for a write
	stall  time.Duration // while the client takes nothing of it
	until  time.Time     // the connection's deadline for writing
	failed error
}

// sender is a socket.Writer.
type sender interface {
	Write(a, b []byte) error
	Patience(d time.Duration, until time.Time) (moved bool)
}

// Whole is the connection as it counts against its budget.
func (r *records) Whole() *socket.Counted { return r.counted }

// spares are the buffers of records that are held.
var spares = sync.Pool{New: func() any { return new([gathered]byte) }} //nolint:gochecknoglobals // used again

// serving has the connection call before each time it is about to wait, and break off writes that stall.
func (r *records) serving(before func(), late func() bool, limit, stall time.Duration) {
	_ = r.SetDeadline(time.Time{}) // a closed connection says so by itself
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before, r.late, r.limit, r.stall = before, late, limit, stall
}

// Read implements net.Conn.
func (r *records) Read(p []byte) (int, error) {
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
func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return 0, r.failed
	}
	if r.held && len(r.buf)+len(p) <= gathered {
		r.buf = append(r.buf, p...)
		return len(p), nil
	}
	if err := r.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// hold begins to gather what is written, release sends it.
func (r *records) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spare, _ = spares.Get().(*[gathered]byte)
	r.held, r.buf = true, r.spare[:0]
}

func (r *records) release() error {
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
func (r *records) send(p []byte) error {
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
func (r *records) patience() {
	now := time.Now()
	fresh := r.until.Sub(now) > r.limit-r.limit/8
	if !fresh {
		r.until = now.Add(r.limit)
	}
	if moved := r.out.Patience(r.stall, r.until); moved || !fresh {
		_ = r.SetWriteDeadline(r.until) // a closed connection says so by itself
	}
}
