// Package whip accepts publishers over WebRTC by WHIP (RFC 9725): an HTTP handler that exchanges an SDP offer for an
// answer and a session's URL, and ICE sockets on which pictures and sound arrive as RTP. It asks an ingest.Gate whether
// a key may publish and fills the ingest.Sink that it is given. It accepts H.264, AV1, VP9 and, where enabled, VP8; and
// Opus.
//
// ICE, DTLS and SRTP are pion's. Everything that a peer says is checked before pion sees it: an offer is rewritten with
// one codec per track and without anything that is not needed. This side is ICE-lite: it answers whoever finds it and
// connects to nobody, so that nothing is ever sent to an address in an offer. The order, times and key frames of the
// media are handled here (see media.go).
//
// It must never know stream records, sessions of the media plane, packaging or HLS. A Server owns a goroutine per
// session, those that read its tracks, and pion's; all have ended when Serve returns.
package whip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/pion/ice/v4"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/socket"
)

// ICEServer is a STUN or TURN server that publishers are told of.
type ICEServer struct {
	URL                  string // stun:, turn: or turns:, RFC 7064 and 7065
	Username, Credential string // of TURN
}

// Options are what a Server needs. Gate and Logger are required, the rest has defaults.
type Options struct {
	Gate   ingest.Gate
	Logger *slog.Logger

	// Path is where the handler is mounted; "/whip" when empty.
	Path string
	// Video are the codecs that pictures are taken in, the best first; H.264, AV1, VP9 when nil.
	Video []frame.Codec
	// Public are addresses of this service that none of its interfaces has, as behind a NAT that forwards the ports.
	Public []netip.Addr
	// Client is who sends a request, of which MaxPerIP bounds the sessions; nil: the connection's peer.
	Client func(*http.Request) netip.Addr
	// ICEServers are told to publishers.
	ICEServers []ICEServer

	// ConnectTimeout is how long a publisher may take from its offer to the end of the DTLS handshake; 15 s when 0.
	ConnectTimeout time.Duration
	// IdleTimeout ends a publication that sends no media at all, with ingest.ErrSilent; 15 s when 0.
	IdleTimeout time.Duration
	// MaxSessions bounds the sessions of the server; 1000 when 0.
	MaxSessions int
	// MaxPerIP bounds those, and the TCP connections, of one IPv4 address or IPv6 /64; 100 when 0.
	MaxPerIP int
	// MaxFrame bounds one frame in bytes; 8 MiB when 0.
	MaxFrame int

	patience time.Duration // for a packet of pictures that was asked for again; videoPatience when 0
}

// Server takes WebRTC publishers. It is an http.Handler; Serve gives it its sockets.
type Server struct {
	opts     Options
	limit    ingest.Limiter
	refusals ingest.SparseLog // by status and who is refused
	comings  ingest.SparseLog // of encoders, by stream key: one may come and go all the time
	peers    ingest.SparseLog // what pion says of them

	mu       sync.Mutex
	sockets  *sockets // nil: not serving
	sessions map[string]*session
	wg       sync.WaitGroup // sessions; added to while serving
}

// sockets are what sessions stand on.
type sockets struct {
	root     context.Context
	udp      ice.UDPMux // nil: none
	tcp      ice.TCPMux // nil: none
	udpAddr  netip.AddrPort
	tcpAddr  netip.AddrPort
	loggers  loggers
	machines func() ([]netip.Addr, error)
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
	set(&o.ConnectTimeout, 15*time.Second)
	set(&o.IdleTimeout, 15*time.Second)
	set(&o.patience, videoPatience)
	count(&o.MaxSessions, 1000)
	count(&o.MaxPerIP, 100)
	if o.Client == nil {
		o.Client = peer
	}
	count(&o.MaxFrame, 8<<20)
	if o.Path == "" {
		o.Path = "/whip"
	}
	if o.Video == nil {
		o.Video = []frame.Codec{frame.H264, frame.AV1, frame.VP9}
	}
	return &Server{
		opts: o, limit: ingest.Limiter{Max: o.MaxSessions, PerOrigin: o.MaxPerIP}, sessions: map[string]*session{},
		refusals: ingest.SparseLog{Logger: o.Logger, Every: logEvery},
		comings:  ingest.SparseLog{Logger: o.Logger, Every: logEvery, AtOnce: 5},
		peers:    ingest.SparseLog{Logger: o.Logger, Every: logEvery},
	}
}

// logEvery is the time in which what anybody can cause has one line in the log.
const logEvery = time.Minute

const (
	udpReadBytes   = 4 << 20 // that wait in the system for all sessions together: key frames come in bursts
	tcpReadPackets = 64      // of a TCP connection that wait to be read
	tcpWriteBytes  = 1 << 20 // that wait to be sent; what is too much is dropped, as UDP would
)

// Serve takes publishers until ctx ends; one of udp and tcp may be nil. Then it ends every session with ctx's cause
// (ingest.ErrShutdown when ctx has none of its own), closes both sockets, and returns nil.
func (s *Server) Serve(ctx context.Context, udp net.PacketConn, tcp net.Listener) error {
	if udp == nil && tcp == nil {
		return errors.New("serve WebRTC: neither a UDP nor a TCP socket")
	}
	root, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(ingest.ErrShutdown)
	k := &sockets{root: root, loggers: loggers{&s.peers}, machines: machineAddresses}
	if udp != nil {
		if b, ok := udp.(interface{ SetReadBuffer(bytes int) error }); ok {
			_ = b.SetReadBuffer(udpReadBytes) // as much of it as the system allows
		}
		k.udp = ice.NewUDPMuxDefault(ice.UDPMuxParams{UDPConn: udp, Logger: k.loggers.NewLogger("udp")})
		k.udpAddr = addrPort(udp.LocalAddr())
		defer func() { _ = k.udp.Close() }() // closes udp
	}
	if tcp != nil {
		k.tcp = ice.NewTCPMuxDefault(ice.TCPMuxParams{
			Listener: newLimitedListener(socket.Listen(tcp, socket.ListenOptions{Name: "whip", Logger: s.opts.Logger}),
				s.opts.MaxSessions, s.opts.MaxPerIP), Logger: k.loggers.NewLogger("tcp"),
			ReadBufferSize: tcpReadPackets, WriteBufferSize: tcpWriteBytes,
			FirstStunBindTimeout: s.opts.ConnectTimeout, AliveDurationForConnFromStun: s.opts.ConnectTimeout,
		})
		k.tcpAddr = addrPort(tcp.Addr())
		defer func() { _ = k.tcp.Close() }() // closes tcp and waits
	}
	s.mu.Lock()
	s.sockets = k
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.sockets = nil
	s.mu.Unlock()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		end(cause)
	}
	end(ingest.ErrShutdown)
	s.wg.Wait()
	for _, log := range []*ingest.SparseLog{&s.refusals, &s.comings, &s.peers} {
		log.Flush()
	}
	return nil
}

// open makes a session of an offer, or says why not.
func (s *Server) open(o *offer, key, encoder string, remote netip.AddrPort) (*session, error) {
	if !s.limit.Acquire(remote) {
		return nil, &problem{status: 429, detail: "too many publishers from this address, or on this service"}
	}
	s.mu.Lock()
	k := s.sockets
	if k != nil {
		s.wg.Add(1)
	}
	s.mu.Unlock()
	if k == nil {
		s.limit.Release(remote)
		return nil, refusal(ingest.ErrShutdown)
	}
	leave := func() {
		s.limit.Release(remote)
		s.wg.Done()
	}
	n := newSession(s, o, key, encoder, remote)
	if err := n.admit(k.root); err != nil {
		leave()
		return nil, err
	}
	if err := n.answer(k); err != nil {
		err = &problem{status: 500, detail: "the connection could not be prepared, try again", err: err, ours: true}
		if cerr := n.close(err); cerr != nil {
			err = cerr
		}
		leave()
		return nil, err
	}
	s.mu.Lock()
	s.sessions[n.id] = n
	s.mu.Unlock()
	go func() {
		defer s.wg.Done()
		n.run()
		s.limit.Release(remote) // before DELETE is answered: its client may publish again at once
		s.mu.Lock()
		delete(s.sessions, n.id)
		s.mu.Unlock()
		close(n.done)
	}()
	return n, nil
}

// refusal is the gate's answer as a problem.
func refusal(err error) error {
	switch {
	case errors.Is(err, ingest.ErrUnknownKey):
		return &problem{status: 401, detail: ingest.ErrUnknownKey.Error(), err: err}
	case errors.Is(err, ingest.ErrDisabled):
		return &problem{status: 403, detail: ingest.ErrDisabled.Error(), err: err}
	case errors.Is(err, ingest.ErrBusy):
		return &problem{status: 409, detail: ingest.ErrBusy.Error(), err: err}
	case errors.Is(err, ingest.ErrShutdown):
		return &problem{status: 503, detail: ingest.ErrShutdown.Error(), err: err}
	}
	return &problem{
		status: 503,
		detail: "the stream key could not be checked, try again",
		err:    fmt.Errorf("admit publication: %w", err),
		ours:   true,
	}
}

// find gives a session by its name.
func (s *Server) find(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}
