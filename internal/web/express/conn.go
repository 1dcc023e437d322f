package express

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"millrace/internal/socket"
)

// conn is one connection; everything but rest runs on its goroutine, and watch while a handler waits.
type conn struct {
	l    *Listener
	nc   *socket.Counted
	over *secure // nil: it is in clear text
	in   io.Reader
	out  outlet

	buf  []byte // what was read and not served yet is buf[from:to]
	from int
	to   int

	ctx     *requestContext
	line    string // of the last request, and its fields
	fields  string
	request *http.Request // used again for every request
	url     url.URL
	header  http.Header
	values  [maxFields]string
	last    bool // the viewer wants no more

	response response
	idle     atomic.Bool // waits for a request
	resting  atomic.Bool // no more requests: the server stops

	due due
}

// outlet is where a connection's responses go: a socket.Writer, or what makes records of TLS for one.
type outlet interface {
	// Write sends a and then b, together.
	Write(a, b []byte) error
	SendFile(head []byte, f *os.File, off, n int64) (sent int64, err error)
	Patience(d time.Duration, until time.Time) (moved bool)
}

// due is when a connection's deadlines are.
type due struct {
	reading     clock // what the one for reading is for
	read, write time.Time
}

// clock says what a deadline for reading measures.
type clock int

const (
	clockNone clock = iota
	clockHead       // a request's head, from its first byte on
	clockIdle       // the time between two requests
)

func newConn(l *Listener, nc *socket.Counted) *conn {
	c := &conn{
		l: l, nc: nc, buf: make([]byte, 1<<10), header: http.Header{},
	}
	if l.opt.TLS != nil {
		c.over = newSecure(nc, l.opt.TLS)
		c.in, c.out = c.over.Conn, sealed{c.over}
	} else {
		c.in, c.out = socket.Reader(nc.TCPConn), socket.NewWriter(nc.TCPConn)
	}
	c.request = &http.Request{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, URL: &c.url, Header: c.header, Body: http.NoBody,
		RemoteAddr: nc.RemoteAddr().String(),
	}
	c.response.header = http.Header{}
	c.response.c = c
	return c
}

// rest asks the connection to end with the response that it is writing, if any. Called by others.
func (c *conn) rest() {
	c.resting.Store(true)
	if c.idle.Load() {
		_ = c.nc.SetReadDeadline(past) // it is closed in any case
	}
}

//nolint:gochecknoglobals // a constant
var past = time.Unix(1, 0)

// run serves the connection until it ends, or gives it for net/http.
func (c *conn) run() (rest net.Conn) {
	if c.over != nil && !c.shakeHands() {
		_ = c.nc.SetDeadline(time.Time{}) // net/http sets its own
		return c.over.Conn
	}
	if c.serve() {
		return nil
	}
	return c.remainder()
}

// close ends the connection; nothing is left to be said.
func (c *conn) close() {
	if c.over != nil {
		c.over.close()
		return
	}
	_ = c.nc.Close()
}

// serve serves requests until the connection ends (true) or sends something that is net/http's (false).
func (c *conn) serve() (mine bool) {
	if c.arm(clockHead, c.l.opt.HeaderTimeout) != nil { // the first request has to come soon
		return true
	}
	for {
		n, err := c.head()
		if err != nil {
			return !errors.Is(err, errNotPlain)
		}
		if !c.parse(c.buf[c.from : c.from+n]) {
			return false
		}
		c.from += n
		if !c.serveOne() {
			return true
		}
	}
}

var errNotPlain = errors.New("not a plain request")

// least is how many bytes behind a response are looked at: what is shorter is no request, and has no response. It is
// net/http's figure.
const least = 4

// head reads until a whole head is at hand and gives its length. Every line has to end with CR LF: what else ends one
// for some readers and not for others is net/http's to judge.
func (c *conn) head() (int, error) {
	line, seen := 0, 0 // from c.from on: where the line begins, and what is known to have no end of a line
	for c.request.Method != "" && c.to-c.from < least {
		if err := c.await(c.to > c.from); err != nil {
			return 0, err
		}
	}
	for {
		got := c.buf[c.from:c.to]
		for {
			i := bytes.IndexByte(got[seen:], '\n')
			if i < 0 {
				break
			}
			end := seen + i
			if end == 0 || got[end-1] != '\r' {
				return 0, errNotPlain
			}
			if end-1 == line {
				if line == 0 {
					return 0, errNotPlain
				}
				return end + 1, nil
			}
			line, seen = end+1, end+1
		}
		seen = len(got)
		if seen >= maxHead || !begins(got) {
			return 0, errNotPlain
		}
		err := c.await(seen > 0)
		if seen > 0 && errors.Is(err, io.EOF) { // net/http has a response to half a head
			return 0, errNotPlain
		}
		if err != nil {
			return 0, err
		}
	}
}

// begins reports whether what has come so far may become a plain request.
func begins(got []byte) bool {
	return len(got) == 0 || agree(got, "GET /") || agree(got, "HEAD /")
}

func agree(got []byte, method string) bool {
	n := min(len(got), len(method))
	return string(got[:n]) == method[:n]
}

// await reads more. begun: the beginning of a request is there.
func (c *conn) await(begun bool) error {
	c.makeRoom()
	if err := c.setReadDeadline(begun); err != nil {
		return err
	}
	c.idle.Store(true)
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

// makeRoom lets something be read behind buf[:to].
func (c *conn) makeRoom() {
	if c.from == c.to {
		c.from, c.to = 0, 0
	}
	if c.to < len(c.buf) {
		return
	}
	if c.from > 0 {
		c.to = copy(c.buf, c.buf[c.from:c.to])
		c.from = 0
		return
	}
	c.buf = append(c.buf, make([]byte, len(c.buf))...)
}

// setReadDeadline moves the deadline only when it matters, because each move costs a timer. That of a head stays where
// it is, however slowly the head comes.
func (c *conn) setReadDeadline(begun bool) error {
	if begun {
		if c.due.reading == clockHead {
			return nil
		}
		return c.arm(clockHead, c.l.opt.HeaderTimeout)
	}
	if c.due.reading == clockHead && c.request.Method == "" { // the first request
		return nil
	}
	if idle := c.l.opt.IdleTimeout; c.due.reading != clockIdle || time.Until(c.due.read) < idle-idle/8 {
		return c.arm(clockIdle, idle)
	}
	return nil
}

func (c *conn) arm(what clock, d time.Duration) error {
	c.due.reading, c.due.read = what, time.Now().Add(d)
	return c.nc.SetReadDeadline(c.due.read)
}

func (c *conn) setWriteDeadline() error {
	limit := c.l.opt.WriteTimeout
	now := time.Now()
	fresh := c.due.write.Sub(now) > limit-limit/8
	if !fresh {
		c.due.write = now.Add(limit)
	}
	if moved := c.out.Patience(c.l.opt.StallTimeout, c.due.write); fresh && !moved {
		return nil
	}
	return c.nc.SetWriteDeadline(c.due.write)
}

// serveOne lets the handler respond to the request that was parsed; false when the connection can't go on.
func (c *conn) serveOne() (ok bool) {
	if c.ctx == nil {
		c.ctx = newRequestContext(c)
		c.request = c.request.WithContext(c.ctx)
	}
	c.ctx.begin()
	counted := c.nc.Begin(0)
	defer func() {
		if counted {
			c.nc.End(0)
		}
		if p := recover(); p != nil {
			ok = false
			if p != http.ErrAbortHandler { //nolint:errorlint // net/http's sentinel, compared as net/http does
				// Without the path: a signed one lets in who reads it.
				c.l.opt.Logger.ErrorContext(c.l.ctx, "handler panicked", "error", p, "stack", string(debug.Stack()))
			}
		}
		if !c.ctx.end() {
			c.ctx = nil
		}
	}()
	if c.setWriteDeadline() != nil {
		return false
	}
	c.response.reset(c.request.Method == http.MethodHead)
	if counted {
		c.l.opt.Handler.ServeHTTP(&c.response, c.request)
	} else {
		full(&c.response)
	}
	return c.response.finish()
}

// full says that other viewers have all places.
func full(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Retry-After", "1")
	h.Set("Cache-Control", "no-store")
	h.Set("Access-Control-Allow-Origin", "*") // players show what is wrong
	http.Error(w, "too many viewers: ask again in a moment", http.StatusServiceUnavailable)
}

// remainder is the connection for net/http: what was read comes again.
func (c *conn) remainder() net.Conn {
	_ = c.nc.SetDeadline(time.Time{}) // net/http sets its own
	if c.over != nil {
		return c.over.remainder(c.buf[c.from:c.to])
	}
	return &readAgain{Counted: c.nc, ahead: c.buf[c.from:c.to]}
}

// readAgain is a connection of which something was read.
type readAgain struct {
	*socket.Counted
	ahead []byte
}

func (r *readAgain) Read(p []byte) (int, error) {
	if len(r.ahead) == 0 {
		return r.TCPConn.Read(p)
	}
	return again(&r.ahead, p), nil
}

// WriteTo would pass over what was read already.
func (r *readAgain) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{r})
}
