package h2

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"millrace/internal/web/express/tlsrecord"
)

// conn is one connection. What the goroutine that reads it needs alone is in reader, what is written in writer.
type conn struct {
	s    *Server
	nc   secure
	wire *tlsrecord.Conn // beneath nc
	ctx  context.Context
	end  context.CancelFunc
	tls  *tls.ConnectionState
	from string       // RemoteAddr of its requests
	also http.Handler // of requests that are not for players

	in  reader
	out writer

	mu      sync.Mutex // never held while writer's is waited for
	streams table

	work  sync.WaitGroup // its goroutines
	ended chan struct{}  // closed when nobody reads it any more
}

// secure is a tls.Conn.
type secure interface {
	io.ReadWriteCloser
	CloseWrite() error
}

func newConn(
	ctx context.Context, s *Server, nc secure, wire *tlsrecord.Conn, state *tls.ConnectionState, also http.Handler,
) *conn {
	c := &conn{
		s: s, nc: nc, wire: wire, tls: state, from: wire.RemoteAddr().String(), also: also,
		ended: make(chan struct{}),
	}
	c.ctx, c.end = context.WithCancel(ctx)
	c.in.init(c)
	c.out.init(c)
	c.streams.init(s.opt.Streams)
	wire.Serving(c.beforeRead, c.late, s.opt.WriteTimeout, s.opt.StallTimeout)
	return c
}

// serve serves the connection until it and all its handlers have ended.
func (c *conn) serve() {
	if err := c.greet(); err != nil {
		c.calmly(err)
		close(c.ended)
	} else {
		c.readOn()
	}
	<-c.ended
	c.end()
	c.work.Wait()
	_ = c.nc.Close() // nothing is left to be said
}

// prohibited reports whether a cipher suite is none of those that HTTP/2 allows with TLS 1.2, RFC 9113 section 9.2.2.
func prohibited(s *tls.ConnectionState) bool {
	if s.Version >= tls.VersionTLS13 {
		return false
	}
	switch s.CipherSuite {
	case tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256:
		return false
	}
	return true
}

// greet sends and reads the connection preface, RFC 9113 section 3.4.
func (c *conn) greet() error {
	if prohibited(c.tls) {
		return http2.ConnectionError(http2.ErrCodeInadequateSecurity)
	}
	c.mu.Lock()
	c.streams.control = appendSettings(c.streams.control,
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(c.s.opt.Streams)},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: uint32(c.s.opt.HeaderList)},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: received})
	c.streams.control = appendWindowUpdate(c.streams.control, 0, received-initialWindow)
	c.mu.Unlock()
	c.out.flush() // before any response, also when the request is here already
	var preface [len(http2.ClientPreface)]byte
	c.in.partial = true
	_, err := io.ReadFull(c.in.buf, preface[:])
	c.frameDone()
	if err == nil && string(preface[:]) != http2.ClientPreface {
		err = http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return err
}

// readOn reads and serves until the connection ends, or another goroutine does in its place.
func (c *conn) readOn() {
	for {
		err := c.next()
		if err == nil {
			continue
		}
		if errors.Is(err, errPassed) {
			return
		}
		c.calmly(err)
		close(c.ended)
		return
	}
}

// errPassed says that another goroutine reads the connection.
var errPassed = errors.New("another goroutine reads on")

// calmly ends the connection. Its peer is told why (RFC 9113 section 5.4.1), unless it has gone itself.
func (c *conn) calmly(err error) {
	code, tell := http2.ErrCodeNo, errors.Is(err, os.ErrDeadlineExceeded)
	if e, ok := errors.AsType[http2.ConnectionError](err); ok {
		code, tell = http2.ErrCode(e), true
	}
	c.mu.Lock()
	told := c.streams.leaving
	c.streams.breakAll()
	if tell = tell && (!told || code != http2.ErrCodeNo); tell {
		c.streams.control = appendGoAway(c.streams.control, c.streams.last, code)
	}
	c.mu.Unlock()
	c.out.flush()
	if tell {
		c.linger()
	}
}

// linger reads what is still on its way, for a moment: a socket that is closed with something unread in it takes back
// what was sent.
func (c *conn) linger() {
	const most = 1 << 20
	c.wire.Unhook()
	_ = c.nc.CloseWrite() // it may be broken
	_ = c.wire.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.CopyN(io.Discard, c.wire, most)
}

// rest asks the connection to end with the streams that it has, RFC 9113 section 6.8. Called by others.
func (c *conn) rest() {
	c.mu.Lock()
	c.streams.leave()
	quiet := c.streams.quiet()
	c.mu.Unlock()
	c.out.flush()
	if quiet {
		c.stop()
	}
}

// stop ends the reading of a connection that has no streams any more.
func (c *conn) stop() { _ = c.wire.SetReadDeadline(past) } // it is closed in any case

//nolint:gochecknoglobals // a constant
var past = time.Unix(1, 0)

// reader is what the goroutine that reads needs, whichever that is.
type reader struct {
	buf     *bufio.Reader
	framer  *http2.Framer
	fields  fields
	calm    calm
	greeted bool // the first SETTINGS have come

	partial bool // a frame, or a block of header fields, has begun
	clock   clock
	until   time.Time

	leader atomic.Pointer[stream] // whose handler runs on that goroutine
	watch  watch
}

// clock says what the deadline for reading measures.
type clock int

const (
	clockNone  clock = iota
	clockIdle        // the time until a request comes
	clockFrame       // the time until a frame is whole
)

func (r *reader) init(c *conn) {
	r.buf = bufio.NewReader(c.nc)
	r.framer = http2.NewFramer(io.Discard, r.buf)
	r.framer.SetMaxReadFrameSize(frameSize)
	r.framer.SetReuseFrames()
	r.fields.init(c.s.opt.HeaderList)
	r.calm.init(time.Now())
	r.watch.reader, r.watch.moment = r, c.s.opt.Moment
}

// next reads a frame and does what it asks for.
func (c *conn) next() error {
	if _, err := c.in.buf.Peek(1); err != nil {
		return err
	}
	c.in.partial = true
	f, err := c.in.framer.ReadFrame()
	if err == nil {
		err = c.frame(f)
	}
	if errors.Is(err, errPassed) {
		return err // the reader is another goroutine's
	}
	if bad, ok := errors.AsType[http2.StreamError](err); ok {
		err = c.wrong(bad)
	} else if errors.Is(err, http2.ErrFrameTooLarge) { // RFC 9113 section 4.2
		err = http2.ConnectionError(http2.ErrCodeFrameSize)
	}
	c.frameDone()
	return err
}

// frameDone says that no frame has begun.
func (c *conn) frameDone() {
	c.in.partial = false
	if c.in.clock == clockFrame {
		c.in.clock = clockNone
	}
}

// beforeRead is called before the socket is read, which may wait: what was gathered goes out, and the deadline is set.
func (c *conn) beforeRead() {
	c.out.flushUnlessBusy()
	what, limit := clockIdle, c.s.opt.IdleTimeout
	if c.in.partial {
		what, limit = clockFrame, c.s.opt.FrameTimeout
	}
	if c.in.clock == what && (what == clockFrame || time.Until(c.in.until) > limit-limit/8) {
		return
	}
	c.in.clock, c.in.until = what, time.Now().Add(limit)
	_ = c.wire.SetReadDeadline(c.in.until) // a closed connection says so by itself
	c.mu.Lock()
	over := c.streams.quiet()
	c.mu.Unlock()
	if over {
		c.stop()
	}
}

// late reports whether a connection whose deadline is over is read on: it is not idle while it has streams.
func (c *conn) late() bool {
	if c.in.clock != clockIdle {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in.clock = clockNone
	return len(c.streams.open) > 0
}
