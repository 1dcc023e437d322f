// Package rtmp accepts publishers over RTMP and RTMPS: sockets in, frames out. It asks an ingest.Gate whether a key may
// publish and fills the ingest.Sink that it is given. It reads H.264, HEVC, AAC and MP3 in FLV's form, and these and
// AV1, VP9, Opus, FLAC and AC-3 in that of Enhanced RTMP version 2 (veovera.org); of several tracks, the first of each
// kind.
//
// The chunk and command layers are our own rather than a library's because everything that a peer says before it has
// shown a key must be cheap: messages are bounded before they are allocated, unknown ones are skipped, and a frame
// costs one allocation.
//
// It must never know stream records, sessions, packaging or HLS. A Server owns one goroutine per connection, and one
// for each Serve, which polls their sockets; all have ended when Serve returns.
package rtmp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/ingest"
	"millrace/internal/socket"
)

// round is how often sockets are looked at. A frame waits for it, so it is a part of the latency that viewers see
// (decision 17).
const round = 6 * time.Millisecond

// Options are what a Server needs. Gate and Logger are required, the rest has defaults.
type Options struct {
	Gate   ingest.Gate
	Logger *slog.Logger

	// HandshakeTimeout is how long a peer may take from the connect to its publish command, TLS handshake and all; 10 s
	// when 0.
	HandshakeTimeout time.Duration
	// IdleTimeout ends a publication that sends no bytes at all, with ingest.ErrSilent; 6 min when 0, which is after
	// the gate's own patience: it alone knows whether another encoder waits for the key.
	IdleTimeout time.Duration
	// WriteTimeout bounds each reply; 5 s when 0.
	WriteTimeout time.Duration
	// MaxConns bounds the connections of the server, published or not; 2000 when 0.
	MaxConns int
	// MaxConnsPerIP bounds those of one IPv4 address or IPv6 /64; 100 when 0. Before its publish command a
	// connection holds at most about 160 KiB, and some 50 KiB more over TLS.
	MaxConnsPerIP int
	// MaxMessage bounds one audio or video message in bytes, which is one frame; 8 MiB when 0.
	MaxMessage int
}

// Server takes RTMP publishers.
type Server struct {
	opts     Options
	limit    ingest.Limiter
	refusals ingest.SparseLog // in the log
}

// New makes a Server; Serve starts it.
func New(o Options) *Server {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	count := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	set(&o.HandshakeTimeout, 10*time.Second)
	set(&o.IdleTimeout, 6*time.Minute)
	set(&o.WriteTimeout, 5*time.Second)
	count(&o.MaxConns, 2000)
	count(&o.MaxConnsPerIP, 100)
	count(&o.MaxMessage, 8<<20)
	return &Server{
		opts: o, limit: ingest.Limiter{Max: o.MaxConns, PerOrigin: o.MaxConnsPerIP},
		refusals: ingest.SparseLog{Logger: o.Logger},
	}
}

// Serve accepts connections of ln until ctx ends: RTMPS with secure, RTMP without. Then it closes ln and every
// connection with ctx's cause (ingest.ErrShutdown when ctx has none of its own), waits for them, and returns nil. A
// listener that is closed otherwise is its error. Several listeners may be served at a time; the limits hold for all of
// them together.
func (s *Server) Serve(ctx context.Context, ln net.Listener, secure *tls.Config) error {
	sockets, err := socket.NewPoller(round)
	if err != nil {
		_ = ln.Close()
		return fmt.Errorf("serve RTMP: %w", err)
	}
	ln = socket.Listen(ln, socket.ListenOptions{Name: "rtmp", Logger: s.opts.Logger})
	conns, end := context.WithCancelCause(context.WithoutCancel(ctx))
	var poller, wg sync.WaitGroup
	poller.Go(func() {
		if err := sockets.Run(); err != nil {
			s.opts.Logger.ErrorContext(ctx, "polling of RTMP sockets ended", "error", err)
			_ = ln.Close()
			end(fmt.Errorf("poll sockets: %w", err))
		}
	})
	defer s.refusals.Flush()
	defer poller.Wait()
	defer func() { _ = sockets.Close() }()
	defer wg.Wait()
	defer end(ingest.ErrShutdown)
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			end(cause)
		}
		end(ingest.ErrShutdown)
		_ = ln.Close()
	})
	defer stop()
	defer func() { _ = ln.Close() }()
	for {
		nc, err := ln.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = nc.Close()
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept RTMP connection: %w", err)
		}
		remote := remoteAddr(nc)
		if !s.limit.Acquire(remote) {
			_ = nc.Close()
			s.refuse(remote)
			continue
		}
		wg.Go(func() {
			defer s.limit.Release(remote)
			conn, err := sockets.Adopt(nc)
			if err != nil {
				s.opts.Logger.WarnContext(conns, "connection not taken", "protocol", "rtmp", "remote", remote, "error",
					err)
				return
			}
			s.serve(conns, conn, remote, secure)
		})
	}
}

func remoteAddr(nc net.Conn) netip.AddrPort {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		p := a.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
	}
	return netip.AddrPort{}
}

// refuse logs that connections are over a limit.
func (s *Server) refuse(remote netip.AddrPort) {
	fromThere, total := s.limit.Count(remote)
	s.refusals.Log("limit", func(log *slog.Logger) {
		log.Warn("too many connections", "protocol", "rtmp", "remote_network", ingest.Origin(remote),
			"network_connections", fromThere, "connections", total)
	})
}

func (s *Server) serve(ctx context.Context, nc net.Conn, remote netip.AddrPort, secure *tls.Config) {
	counted, _ := nc.(interface{ Busy() })
	if secure != nil {
		nc = tls.Server(nc, secure)
	}
	defer func() { _ = nc.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	start := time.Now()
	c := newConn(nc, remote, &s.opts)
	if counted != nil {
		c.busy = counted.Busy
	}
	s.report(ctx, c, c.run(ctx), time.Since(start))
}

// report is the one line that a connection's end is worth.
func (s *Server) report(ctx context.Context, c *conn, err error, lasted time.Duration) {
	log := c.log.With("protocol", c.protocol, "remote", c.remote)
	encoder := c.request.encoder
	if c.media.encoder != "" {
		encoder = c.media.encoder
	}
	if p, ok := errors.AsType[*fault.PanicError](err); ok {
		log.ErrorContext(ctx, "connection panicked", "error", p, "encoder", encoder, "stack", string(p.Stack))
		return
	}
	if c.published {
		n := c.media.counts
		log.InfoContext(ctx, "encoder disconnected", "reason", err, "encoder", encoder, "duration", lasted, "bytes",
			c.wire.src.count,
			"video_frames", n.video, "audio_frames", n.audio, "malformed", n.malformed)
		return
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		level := slog.LevelWarn
		if r.ours {
			level = slog.LevelError
		}
		s.refusals.Log(c.protocol+" "+r.description, func(log *slog.Logger) {
			log.Log(ctx, level, "publish refused", "protocol", c.protocol, "remote", c.remote, "reason", r.err,
				"encoder", encoder)
		})
		return
	}
	log.DebugContext(ctx, "connection ended before publish", "error", err, "encoder", encoder)
}
