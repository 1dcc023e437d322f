// Package express serves the plain GET and HEAD requests of viewers on keep-alive connections of HTTP/1.1, in clear
// text or over TLS, at half the cost of net/http. It only serves what it understands to the last byte. The first
// request on a connection that is anything else (another method, a body, an upgrade, HTTP/2, a path that is not the
// handler's, an odd header) hands the whole connection, with the bytes read so far, to net/http, which then keeps it.
// So there is one set of rules for what a request may be, and it is net/http's: a request that is served here has the
// same meaning there, and tests compare both byte for byte.
//
// Over TLS, the handshake takes place here. Connections that chose another protocol, or whose handshake failed, are
// passed to net/http unchanged, with their TLS state.
//
// It must never know what is served. Its requests belong to the first kind in the connections' budget: when all places
// of that kind are taken, the response is 503. A Listener owns one goroutine that accepts, one per connection, and one
// more for a request whose handler waits, which ends that request's context when the viewer goes away; Shutdown waits
// for all.
//
// A handler must not keep the request, its headers or the ResponseWriter after it has returned, because the next
// request on the connection reuses them; it cannot flush or hijack. Interim responses (1xx) are omitted.
package express

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"millrace/internal/socket"
)

// Options is what a Listener needs.
type Options struct {
	Handler http.Handler
	// Takes reports whether a request for a path is the Handler's. All others are net/http's.
	Takes  func(path string) bool
	Logger *slog.Logger
	TLS    *tls.Config // nil: in clear text

	// For a handshake, and for the whole head of a request: from its first byte, of the first one from the connection
	// or the handshake on; 10 s when 0.
	HeaderTimeout time.Duration
	IdleTimeout   time.Duration // between two requests, up to an eighth less; 2 min when 0
	WriteTimeout  time.Duration // of one response, up to an eighth less; 5 min when 0
	StallTimeout  time.Duration // while the viewer takes nothing of a response; 20 s when 0
}

// Listener serves what it can and gives the other connections to anyone who accepts from it.
type Listener struct {
	inner net.Listener
	opt   Options
	ctx   context.Context // of the requests
	end   context.CancelFunc

	rest chan net.Conn // for net/http
	done chan struct{} // closed when nothing more is accepted
	err  error         // why; set before done is closed

	wg      sync.WaitGroup
	mu      sync.Mutex
	conns   map[*conn]struct{}
	closing bool
}

// Listen starts to accept from inner. Requests have a context below ctx.
func Listen(ctx context.Context, inner net.Listener, o Options) *Listener {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&o.HeaderTimeout, 10*time.Second)
	set(&o.IdleTimeout, 2*time.Minute)
	set(&o.WriteTimeout, 5*time.Minute)
	set(&o.StallTimeout, 20*time.Second)
	inner = socket.Listen(inner, socket.ListenOptions{Name: "http", Logger: o.Logger})
	l := &Listener{
		inner: inner, opt: o, rest: make(chan net.Conn), done: make(chan struct{}),
		conns: map[*conn]struct{}{},
	}
	l.ctx, l.end = context.WithCancel(ctx)
	l.wg.Go(l.accept)
	return l
}

// Accept implements net.Listener: it gives connections that are not for this package.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.rest:
		return c, nil
	case <-l.done:
		return nil, l.err
	}
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close implements net.Listener: no new connections, the open ones go on.
func (l *Listener) Close() error {
	if err := l.inner.Close(); err != nil {
		return fmt.Errorf("close listener: %w", err)
	}
	return nil
}

// Shutdown closes the listener and the connections that have no whole request, lets the responses that are being
// written end, and waits until ctx ends; then it cuts them off. Requests that wait for something end because the
// context given to Listen has.
func (l *Listener) Shutdown(ctx context.Context) error {
	_ = l.inner.Close() // it may be closed already
	l.mu.Lock()
	l.closing = true
	for c := range l.conns {
		c.rest()
	}
	l.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		l.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		l.end()
		return nil
	case <-ctx.Done():
	}
	l.end()
	l.mu.Lock()
	for c := range l.conns {
		_ = c.nc.Close() // it is given up
	}
	l.mu.Unlock()
	last := time.NewTimer(lastGrace)
	defer last.Stop()
	select {
	case <-ended:
	case <-last.C: // storage that hangs
	}
	return fmt.Errorf("end connections: %w", context.Cause(ctx))
}

// lastGrace is how long a handler may go on after its connection was cut off before Shutdown gives it up.
const lastGrace = 5 * time.Second

// accept takes connections until the listener is closed.
func (l *Listener) accept() {
	defer close(l.done)
	for {
		nc, err := l.inner.Accept()
		if err != nil {
			l.err = err
			return
		}
		l.dispatch(nc)
	}
}

// dispatch serves a connection on a goroutine of its own, or hands it over at once when it is not TCP.
func (l *Listener) dispatch(nc net.Conn) {
	counted, ok := socket.Count(nc)
	if !ok {
		if l.opt.TLS != nil {
			nc = tls.Server(nc, l.opt.TLS)
		}
		l.wg.Go(func() { l.handOver(nc) })
		return
	}
	c := newConn(l, counted)
	l.mu.Lock()
	l.conns[c] = struct{}{}
	if l.closing {
		c.rest()
	}
	l.mu.Unlock()
	l.wg.Go(func() {
		rest := c.run()
		l.mu.Lock()
		delete(l.conns, c)
		l.mu.Unlock()
		if rest == nil {
			c.close()
			return
		}
		l.handOver(rest)
	})
}

// handOver gives a connection to anyone who accepts.
func (l *Listener) handOver(nc net.Conn) {
	select {
	case l.rest <- nc:
	case <-l.done:
		_ = nc.Close() // nobody takes it any more
	}
}
