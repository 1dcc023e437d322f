// Package srt accepts publishers over SRT: MPEG-TS in, frames out. It asks Secrets for the passphrase of a stream key,
// checks it in the handshake, asks an ingest.Gate whether the key may publish, and fills the ingest.Sink that it is
// given. Callers can only publish, and only with encryption.
//
// The protocol itself is gosrt's. Its gaps are closed here: handshakes that make it panic or allocate as much as the
// peer likes, peers that let its receive buffer grow, and unencrypted packets on an encrypted connection.
//
// It must never know stream records, sessions, packaging or HLS. A Server owns one goroutine that accepts, one that
// watches its connections and one for each connection; gosrt has three more for each. All have ended when Serve
// returns.
package srt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	gosrt "github.com/datarhei/gosrt"

	"millrace/internal/fault"
	"millrace/internal/media/ingest"
)

// Secrets tells the passphrase that goes with a stream key: ingest.ErrUnknownKey, or an internal error. Both strings
// are secrets.
type Secrets interface {
	Passphrase(ctx context.Context, key string) (string, error)
}

// Options are what a Server needs. Gate, Secrets and Logger are required, the rest has defaults.
type Options struct {
	Gate    ingest.Gate
	Secrets Secrets
	Logger  *slog.Logger

	// HandshakeTimeout is how long the response to a caller may take (3 s at most, which is how long callers wait), and
	// then how long the first packet of media may; 4 s when 0.
	HandshakeTimeout time.Duration
	// IdleTimeout ends a connection from which nothing came, not even a sign of life; 15 s when 0. Callers give one
	// each second.
	IdleTimeout time.Duration
	// Latency is what packets are held for at least, so that lost ones can be sent again; 120 ms when 0. A caller may
	// ask for more.
	Latency time.Duration
	// MaxConns bounds the connections of the server; 2000 when 0.
	MaxConns int
	// MaxConnsPerIP bounds those of one IPv4 address or IPv6 /64, with callers in their handshake; 100 when 0.
	MaxConnsPerIP int
	// MaxHandshakes bounds how many handshakes go on at a time: each costs a look-up and some milliseconds of work; 64
	// when 0.
	MaxHandshakes int
	// MaxHandshakesPerIP bounds those of one IPv4 address or IPv6 /64, so that nobody takes all places with keys that
	// are guessed; 16 when 0.
	MaxHandshakesPerIP int
	// MaxBuffer bounds what one connection holds of packets that are not due yet, in bytes; 32 MiB when 0: twelve
	// seconds of 20 Mbit/s.
	MaxBuffer uint64
}

// Server takes SRT publishers.
type Server struct {
	opts       Options
	ln         gosrt.Listener
	limit      ingest.Limiter
	handshakes ingest.Limiter   // of callers that wait for the response
	returning  ingest.Limiter   // likewise, of those whose key was right before
	keys       keys             // that were right
	refusals   ingest.SparseLog // in the log

	mu    sync.Mutex
	conns map[uint32]*conn // by socket id
}

// kernelBuffer is asked for on the socket, in bytes: all connections share it, and a burst of key frames must not
// overflow it. The kernel gives at most net.core.rmem_max.
const kernelBuffer = 8 << 20

// Listen opens the UDP socket; Serve starts the Server, and Close is for one that is never started.
func Listen(ctx context.Context, addr string, o Options) (*Server, error) {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.HandshakeTimeout, 4 * time.Second},
		{&o.IdleTimeout, 15 * time.Second},
		{&o.Latency, 120 * time.Millisecond},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	for _, n := range []struct {
		field *int
		value int
	}{{&o.MaxConns, 2000}, {&o.MaxConnsPerIP, 100}, {&o.MaxHandshakes, 64}, {&o.MaxHandshakesPerIP, 16}} {
		if *n.field <= 0 {
			*n.field = n.value
		}
	}
	if o.MaxBuffer == 0 {
		o.MaxBuffer = 32 << 20
	}
	bind, err := resolve(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := gosrt.DefaultConfig()
	c.ReceiverLatency, c.PeerLatency = o.Latency, o.Latency
	c.PeerIdleTimeout = o.IdleTimeout
	c.ListenerControl = control
	s := &Server{
		opts: o, conns: map[uint32]*conn{},
		limit:      ingest.Limiter{Max: o.MaxConns, PerOrigin: o.MaxConnsPerIP},
		handshakes: ingest.Limiter{Max: o.MaxHandshakes, PerOrigin: o.MaxHandshakesPerIP},
		returning:  ingest.Limiter{Max: o.MaxHandshakes, PerOrigin: o.MaxHandshakes},
		refusals:   ingest.SparseLog{Logger: o.Logger},
	}
	c.Logger = packetLog{s}
	if s.ln, err = gosrt.Listen("srt", bind, c); err != nil {
		return nil, fmt.Errorf("listen for SRT: %w", err)
	}
	return s, nil
}

// control sets the options of the socket, before it is bound.
func control(_, _ string, raw syscall.RawConn) error {
	var shared error
	err := raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, kernelBuffer) // as much as there is
		// gosrt lets others bind the port too, and the kernel gives all packets to the one that did last.
		shared = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0)
	})
	return errors.Join(err, shared)
}

// packetLog takes from gosrt's log what gosrt does not tell otherwise. It implements gosrt.Logger.
type packetLog struct{ s *Server }

// HasTopic implements gosrt.Logger.
func (packetLog) HasTopic(string) bool { return false }

// Listen implements gosrt.Logger.
func (packetLog) Listen() <-chan gosrt.Log { return nil }

// Close implements gosrt.Logger.
func (packetLog) Close() {}

// Print implements gosrt.Logger. It is called for each packet, before anything is done about it, and makes no text of
// it.
func (p packetLog) Print(topic string, socket uint32, _ int, _ func() string) {
	switch topic {
	case "control:recv:shutdown:dump":
		if c := p.s.conn(socket); c != nil {
			c.shutDown()
		}
	case "control:recv:ACKACK:dump":
		if c := p.s.conn(socket); c != nil {
			c.acknowledged()
		}
	}
}

func (s *Server) conn(socket uint32) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[socket]
}

// resolve turns the host of an address into the IP address that gosrt wants.
func resolve(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("read SRT address: %w", err)
	}
	if _, perr := netip.ParseAddr(host); host == "" || perr == nil {
		return addr, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", fmt.Errorf("look up host of SRT address: %w", err)
	}
	return net.JoinHostPort(ips[0].Unmap().String(), port), nil
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Close frees the socket of a Server that is not served.
func (s *Server) Close() { s.ln.Close() }

// Serve takes callers until ctx ends. Then it closes every connection with ctx's cause (ingest.ErrShutdown when ctx has
// none of its own), waits for them, and returns nil. A socket that breaks is its error.
func (s *Server) Serve(ctx context.Context) error {
	conns, end := context.WithCancelCause(context.WithoutCancel(ctx))
	accepting, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg, watch sync.WaitGroup
	watch.Go(func() { s.watch(accepting) })
	defer s.refusals.Flush()
	defer watch.Wait()
	defer stop()
	defer s.ln.Close() // last of all: the connections say goodbye over it
	defer wg.Wait()
	defer end(ingest.ErrShutdown)
	failed := make(chan error, 1)
	watch.Go(func() { failed <- s.accept(conns, &wg) })
	select {
	case err := <-failed:
		return fmt.Errorf("accept SRT connection: %w", err)
	case <-ctx.Done():
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			end(cause)
		}
		return nil
	}
}

// accept takes callers until the listener ends, which is its error.
func (s *Server) accept(ctx context.Context, wg *sync.WaitGroup) error {
	for {
		var req gosrt.ConnRequest
		var broken error
		err := fault.Guard(func() error {
			req, broken = s.ln.Accept2()
			return nil
		})
		if broken != nil {
			return broken
		}
		if err != nil { // gosrt reads past the end of a handshake whose extensions are cut short
			s.drop("handshake can not be read", netip.AddrPort{})
			continue
		}
		s.handle(ctx, wg, req)
	}
}

// handle serves a caller on a goroutine of its own, or rejects it at once when it is one too many.
func (s *Server) handle(ctx context.Context, wg *sync.WaitGroup, req gosrt.ConnRequest) {
	remote := addrPort(req.RemoteAddr())
	if ctx.Err() != nil {
		req.Reject(gosrt.REJX_DOWN)
		return
	}
	if !s.limit.Acquire(remote) {
		req.Reject(gosrt.REJX_OVERLOAD)
		s.drop("too many connections", remote)
		return
	}
	places := &s.handshakes
	if s.keys.has(req.StreamId()) {
		places = &s.returning
	}
	if !places.Acquire(remote) {
		s.limit.Release(remote)
		req.Reject(gosrt.REJX_OVERLOAD)
		s.drop("too many callers at a time", remote)
		return
	}
	c := &conn{
		server: s, opts: &s.opts, remote: remote, req: req, places: places, log: s.opts.Logger, begun: time.Now(),
	}
	wg.Go(func() {
		defer s.limit.Release(remote)
		s.report(ctx, c, c.run(ctx))
	})
}

func addrPort(a net.Addr) netip.AddrPort {
	if u, ok := a.(*net.UDPAddr); ok {
		p := u.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
	}
	return netip.AddrPort{}
}

// drop logs who was turned away without a look.
func (s *Server) drop(why string, remote netip.AddrPort) {
	s.refusals.Log(why, func(log *slog.Logger) {
		log.Warn("SRT callers turned away", "reason", why, "remote_network", ingest.Origin(remote))
	})
}

func (s *Server) enter(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c.wire.SocketId()] = c
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c.wire.SocketId())
}

// watchEvery is how far a connection may get beyond its bounds.
const watchEvery = 250 * time.Millisecond

// watch looks after the connections: gosrt has no deadlines, and its receive buffer no bound.
func (s *Server) watch(ctx context.Context) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	var all []*conn
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			s.mu.Lock()
			all = all[:0]
			for _, c := range s.conns {
				all = append(all, c)
			}
			s.mu.Unlock()
			for _, c := range all {
				c.inspect(now)
			}
		}
	}
}

// report is the one line that a connection's end is worth.
func (s *Server) report(ctx context.Context, c *conn, err error) {
	log := c.log.With("protocol", "srt", "remote", c.remote)
	if p, ok := errors.AsType[*fault.PanicError](err); ok {
		log.ErrorContext(ctx, "connection panicked", "error", p, "encoder", c.encoder, "stack", string(p.Stack))
		return
	}
	if r, ok := errors.AsType[*refusal](err); ok {
		level := slog.LevelWarn
		if r.ours {
			level = slog.LevelError
		}
		s.refusals.Log(r.kind, func(log *slog.Logger) {
			log.Log(ctx, level, "publish refused", "protocol", "srt", "remote", c.remote, "reason", r.err,
				"code", int(r.code), "encoder", c.encoder)
		})
		return
	}
	ts, link := c.demuxer.Stats(), c.link()
	log.InfoContext(ctx, "encoder disconnected", "reason", err, "encoder", c.encoder, "duration", time.Since(c.begun),
		"bytes", c.bytes,
		"video_frames", ts.Video, "audio_frames", ts.Audio, "malformed", ts.Malformed,
		"packets", link.Packets, "packets_lost", link.Lost, "packets_retransmitted", link.Retransmitted,
		"packets_dropped", link.Dropped, "plain", c.plain,
		"broken_units", ts.Broken, "undecodable", ts.Waiting, "key_frames_replaced", ts.Replaced, "references_replaced",
		ts.Repeated, "scrambled", ts.Scrambled, "ignored_streams", strings.Join(c.demuxer.Ignored(), ", "))
}
