// Package proxyprotocol reads the headers in which reverse proxies pass on the client's address of a TCP connection:
// the PROXY protocol of HAProxy, versions 1 and 2. It must never know what is spoken after the header.
package proxyprotocol

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/socket"
)

// Options are what a Listener needs.
type Options struct {
	// Trusts reports whether a header from this address is believed; from any other it is what the connection's
	// protocol makes of it.
	Trusts func(netip.Addr) bool
	Logger *slog.Logger // nil: nowhere
	// Timeout is how long a trusted peer may take until it can be told whether it begins with a header, and until that
	// has come; 10 s when 0.
	Timeout time.Duration
}

// Listener gives connections whose RemoteAddr is that of the client, not of the proxy, where a trusted proxy says so.
// Headers are read beside each other: one that does not come delays nobody.
type Listener struct {
	inner net.Listener
	o     Options

	known chan net.Conn // whose client is known
	done  chan struct{} // closed when nothing more is accepted
	err   error         // why; set before done is closed

	wg  sync.WaitGroup
	ctx context.Context // of the headers that are being read
	end context.CancelFunc

	told atomic.Int64 // when the log was last told of a header that is none, in Unix nanoseconds
}

// Listen starts to accept from inner, until the Listener is closed.
func Listen(ctx context.Context, inner *socket.Listener, o Options) *Listener {
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Listener{inner: inner, o: o, known: make(chan net.Conn), done: make(chan struct{})}
	l.ctx, l.end = context.WithCancel(context.WithoutCancel(ctx))
	l.wg.Go(l.accept)
	return l
}

// Accept implements net.Listener. Its error is always net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case nc := <-l.known:
		return nc, nil
	case <-l.done:
		return nil, l.err
	}
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close implements net.Listener. It closes the connections that nobody has accepted, too.
func (l *Listener) Close() error {
	err := l.inner.Close()
	l.end()
	l.wg.Wait()
	return err
}

// accept takes connections until the listener is closed.
func (l *Listener) accept() {
	defer close(l.done)
	for {
		nc, err := l.inner.Accept()
		if err != nil {
			l.err = err
			return
		}
		counted, ok := socket.Count(nc)
		if !ok || !l.o.Trusts(address(counted)) {
			l.give(nc)
			continue
		}
		l.wg.Go(func() {
			if l.introduce(counted) {
				l.give(counted)
			}
		})
	}
}

func address(nc net.Conn) netip.Addr {
	a, ok := nc.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return a.AddrPort().Addr().Unmap()
}

// give waits until somebody accepts the connection.
func (l *Listener) give(nc net.Conn) {
	select {
	case l.known <- nc:
	case <-l.ctx.Done():
		_ = nc.Close() // nobody takes it any more
	}
}

// introduce finds out whom a trusted peer passes on. It reports whether the connection is worth anything; if not it is
// closed.
func (l *Listener) introduce(nc *socket.Counted) bool {
	unhook := context.AfterFunc(l.ctx, func() { _ = nc.Close() })
	defer unhook()
	err := nc.SetReadDeadline(time.Now().Add(l.o.Timeout))
	if err == nil {
		err = read(nc)
	}
	if err == nil {
		err = nc.SetReadDeadline(time.Time{})
	}
	if err == nil {
		return true
	}
	_ = nc.Close()
	if bad, is := errors.AsType[*headerError](err); is {
		l.logBad(nc, bad)
	}
	return false
}

// tellEvery is how often the log may be told of headers that are none.
const tellEvery = time.Second

func (l *Listener) logBad(nc *socket.Counted, bad *headerError) {
	now := time.Now().UnixNano()
	if last := l.told.Load(); now-last < int64(tellEvery) || !l.told.CompareAndSwap(last, now) {
		return
	}
	l.o.Logger.WarnContext(l.ctx, "connection closed: it begins like a PROXY header and is none",
		"remote", nc.TCPConn.RemoteAddr(), "error", bad)
}
