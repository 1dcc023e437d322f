package internode

import (
	"context"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// attempt is a request's connection, which tells whether what is at its other end speaks HTTP/2.
type attempt struct{ conn atomic.Pointer[greeted] }

type attemptKey struct{}

// watch makes the context of a request that the attempt is about.
func (a *attempt) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(context.WithValue(ctx, attemptKey{}, a), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if g, ok := info.Conn.(*greeted); ok { // no TLS, which negotiates the protocol
				a.conn.Store(g)
			}
		},
	})
}

// stranger reports whether what has come over the connection is not how a server of HTTP/2 begins.
func (a *attempt) stranger() bool {
	g := a.conn.Load()
	return g != nil && g.strange.Load()
}

// dial is a Transport's DialContext.
func dial(d *net.Dialer) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		g := &greeted{Conn: c}
		if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
			a.conn.Store(g)
		}
		return g, nil
	}
}

// greeted looks at the first bytes that come over a connection: of HTTP/2 they are a frame of settings (RFC 9113
// section 3.4), of TLS a record of a handshake (RFC 8446 section 5.1).
type greeted struct {
	net.Conn
	read    int // bytes; by one goroutine
	strange atomic.Bool
}

const (
	frameType, settingsFrame      = 3, 4
	recordType, handshakeOfRecord = 0, 22
)

// Read implements net.Conn.
func (g *greeted) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if g.read <= frameType && n > 0 {
		at := frameType - g.read
		record := g.read == 0 && p[recordType] == handshakeOfRecord
		if at < n && p[at] != settingsFrame && !record {
			g.strange.Store(true)
		}
		g.read += n
	}
	return n, err
}
