package express

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync/atomic"
	"time"

	"millrace/internal/socket"
)

// conn is one connection; everything but rest runs on its goroutine.
type conn struct {
	l  *Listener
	nc *net.TCPConn
	in io.Reader

	buf  []byte // what was read and not served yet is buf[from:to]
	from int
	to   int

	request http.Request // used again for every request
	url     url.URL
	header  http.Header
	values  [maxFields]string
	last    bool // the viewer wants no more

	answer  response
	idle    atomic.Bool // waits for a request
	resting atomic.Bool // no more requests: the server stops

	readUntil, writeUntil time.Time // the deadlines that are set
}

func newConn(l *Listener, nc *net.TCPConn) *conn {
	c := &conn{l: l, nc: nc, in: socket.Reader(nc), buf: make([]byte, 1<<10), header: http.Header{}}
	c.request = *(&http.Request{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, URL: &c.url, Header: c.header, Body: http.NoBody, RemoteAddr: nc.RemoteAddr().String(),
	}).WithContext(l.ctx)
	c.answer.header = http.Header{}
	c.answer.c = c
	return c
}

// rest asks the connection to end with the answer that it is writing. Called by others.
func (c *conn) rest() {
	c.resting.Store(true)
	if c.idle.Load() {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // it is closed in any case
	}
}

// serve answers requests until the connection ends (true) or sends something that is net/http's (false).
func (c *conn) serve() (mine bool) {
	for {
		n, err := c.head()
		if err != nil {
			return !errors.Is(err, errNotPlain)
		}
		// The copy is what the request's texts are made of; it lasts as long as any of them is held.
		if !c.parse(string(c.buf[c.from : c.from+n])) {
			return false
		}
		c.from += n
		if !c.serveOne() || c.last || c.resting.Load() {
			return true
		}
	}
}

var errNotPlain = errors.New("not a plain request")

// head reads until a whole head is at hand and gives its length.
func (c *conn) head() (int, error) {
	seen := 0
	for {
		if got := c.buf[c.from:c.to]; len(got) > 0 {
			if i := bytes.Index(got[max(0, seen-3):], []byte("\r\n\r\n")); i >= 0 {
				return max(0, seen-3) + i + 4, nil
			}
			if !begins(got) || len(got) >= maxHead {
				return 0, errNotPlain
			}
			seen = len(got)
		}
		if err := c.await(seen > 0); err != nil {
			return 0, err
		}
	}
}

// begins says that what has come so far may become a plain request.
func begins(got []byte) bool {
	for _, method := range []string{"GET /", "HEAD /"} {
		n := min(len(got), len(method))
		if string(got[:n]) == method[:n] {
			return true
		}
	}
	return false
}

// await reads more. begun: the beginning of a request is there.
func (c *conn) await(begun bool) error {
	if c.from == c.to {
		c.from, c.to = 0, 0
	}
	if c.to == len(c.buf) {
		if c.from == 0 {
			c.buf = append(c.buf, make([]byte, len(c.buf))...)
		} else {
			c.to = copy(c.buf, c.buf[c.from:c.to])
			c.from = 0
		}
	}
	if err := c.setReadDeadline(begun); err != nil {
		return err
	}
	c.idle.Store(!begun)
	if c.resting.Load() {
		return net.ErrClosed
	}
	n, err := c.in.Read(c.buf[c.to:])
	c.idle.Store(false)
	c.to += n
	if n > 0 {
		return nil
	}
	return err
}

// setReadDeadline moves the deadline only when it matters, because each move costs a timer.
func (c *conn) setReadDeadline(begun bool) error {
	now := time.Now()
	until := now.Add(c.l.opt.IdleTimeout)
	if begun || c.readUntil.IsZero() { // the first request has to come soon, too
		until = now.Add(c.l.opt.HeaderTimeout)
	}
	if d := until.Sub(c.readUntil); d >= 0 && d < c.l.opt.IdleTimeout/8 && !begun {
		return nil
	}
	c.readUntil = until
	return c.nc.SetReadDeadline(until)
}

func (c *conn) setWriteDeadline() error {
	until := time.Now().Add(c.l.opt.WriteTimeout)
	if until.Sub(c.writeUntil) < c.l.opt.WriteTimeout/8 {
		return nil
	}
	c.writeUntil = until
	return c.nc.SetWriteDeadline(until)
}

// serveOne lets the handler answer the request that was parsed; false when the connection can't go on.
func (c *conn) serveOne() (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			ok = false
			if p != http.ErrAbortHandler { //nolint:errorlint // net/http's sentinel, compared as net/http does
				c.l.opt.Logger.ErrorContext(c.l.ctx, "handler panicked", "path", c.url.Path, "panic", p, "stack", string(debug.Stack()))
			}
		}
	}()
	if c.setWriteDeadline() != nil {
		return false
	}
	c.answer.reset(c.request.Method == http.MethodHead)
	c.l.opt.Handler.ServeHTTP(&c.answer, &c.request)
	return c.answer.finish()
}

// remainder is the connection for net/http: what was read comes again.
func (c *conn) remainder() net.Conn {
	_ = c.nc.SetDeadline(time.Time{}) // net/http sets its own
	return &readAgain{TCPConn: c.nc, ahead: c.buf[c.from:c.to]}
}

// readAgain is a connection of which something was read.
type readAgain struct {
	*net.TCPConn
	ahead []byte
}

func (r *readAgain) Read(p []byte) (int, error) {
	if len(r.ahead) == 0 {
		return r.TCPConn.Read(p)
	}
	n := copy(p, r.ahead)
	r.ahead = r.ahead[n:]
	return n, nil
}

// WriteTo would pass over what was read already.
func (r *readAgain) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{r})
}
