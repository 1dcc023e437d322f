// Package h2 serves HTTP/2 over TLS (RFC 9113) to viewers, at little more than nginx's cost. net/http writes each frame
// on a goroutine of its own, and each TLS record with a system call of its own; here, responses to requests that
// arrived together are sent together.
//
// The goroutine that reads a connection also runs the handlers of players' requests, which hardly ever wait. When one
// does (it waits for the end of its context, its flow-control window is used up, or it takes longer than a moment), it
// continues where it is, and another goroutine takes over reading: no stream blocks another. All other requests have
// goroutines of their own, and bodies with flow control.
//
// It must never know what is served. A Server owns the goroutines of its connections and their requests; Serve returns
// when all of its connections have ended. The work that a client can cause in vain is bounded, see calm.go.
package h2

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"millrace/internal/web/express/tlsrecord"
)

// Options is what a Server needs.
type Options struct {
	// Players serves GET and HEAD of the paths that Takes is true for. It may not keep the request, its headers or the
	// ResponseWriter after it has returned.
	Players http.Handler
	Takes   func(path string) bool
	Logger  *slog.Logger

	Streams    int // at a time on a connection; 100 when 0
	HeaderList int // bytes that the fields of a request may have, each with 32 more; 64 KiB when 0

	FrameTimeout time.Duration // for a frame, and for all of a header block, from its first byte; 20 s when 0
	IdleTimeout  time.Duration // of a connection without streams, up to an eighth less; 2 min when 0
	ReadTimeout  time.Duration // of a request's body; 2 min when 0
	WriteTimeout time.Duration // of a response; 5 min when 0
	StallTimeout time.Duration // while the client takes nothing of a response; 20 s when 0

	// Moment is how long a player's handler may keep the goroutine that reads, at most twice; 10 ms when 0.
	Moment time.Duration
}

// Server serves connections whose handshakes have chosen "h2".
type Server struct {
	opt Options

	mu      sync.Mutex
	conns   map[*conn]struct{}
	closing bool
}

// New returns a Server.
func New(o Options) *Server {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&o.FrameTimeout, 20*time.Second)
	set(&o.IdleTimeout, 2*time.Minute)
	set(&o.ReadTimeout, 2*time.Minute)
	set(&o.WriteTimeout, 5*time.Minute)
	set(&o.StallTimeout, 20*time.Second)
	set(&o.Moment, 10*time.Millisecond)
	if o.Streams <= 0 {
		o.Streams = 100
	}
	if o.HeaderList <= 0 {
		o.HeaderList = 64 << 10
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{opt: o, conns: map[*conn]struct{}{}}
}

// Serve serves a connection until it and all handlers have ended. Requests that are not for players are rest's, and all
// have a context below ctx. The connection stands on a tlsrecord.Conn.
func (s *Server) Serve(ctx context.Context, nc *tls.Conn, rest http.Handler) {
	wire, ok := nc.NetConn().(*tlsrecord.Conn)
	if !ok {
		s.opt.Logger.ErrorContext(ctx, "connection does not stand on a tlsrecord.Conn")
		return
	}
	state := nc.ConnectionState()
	s.serve(newConn(ctx, s, nc, wire, &state, rest))
}

func (s *Server) serve(c *conn) {
	s.mu.Lock()
	s.conns[c] = struct{}{}
	closing := s.closing
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	if closing {
		c.rest()
	}
	c.serve()
}

// TLSNextProto is how an http.Server hands over a connection.
func (s *Server) TLSNextProto(_ *http.Server, nc *tls.Conn, h http.Handler) {
	base, ok := h.(interface{ BaseContext() context.Context })
	if !ok {
		return // it is net/http's handler, which has one
	}
	s.Serve(base.BaseContext(), nc, h)
}

// Shutdown asks all connections to end with the streams that they have (RFC 9113 section 6.8), and does not wait.
func (s *Server) Shutdown() {
	s.mu.Lock()
	s.closing = true
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.rest()
	}
}
