package whip

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"

	"millrace/internal/fault"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
)

const (
	errLost        = ingest.Ended("connection was lost")
	errHungUp      = ingest.Ended("publisher closed the connection")
	errNoConnect   = ingest.Ended("no connection in time")
	errManyStreams = ingest.Ended("too many RTP streams")
)

const (
	maxEvents = 512                   // packets on their way from the connection
	tickTime  = 20 * time.Millisecond // between looks at what is waited for
)

// event is what the readers of a session's tracks hand on.
type event struct {
	kind   frame.Kind
	at     time.Time
	packet *rtp.Packet        // or
	report *rtcp.SenderReport // or
	ssrc   uint32             // of a track that begins
}

// session is one publisher's, from its offer to its end.
type session struct {
	server  *Server
	id      string // part of its URL; nobody guesses it
	key     string // secret
	encoder string
	remote  netip.AddrPort
	log     *slog.Logger
	labels  []any // of its lines

	pub    context.Context // ends when the session is to end, with the cause
	cancel context.CancelCauseFunc
	sink   ingest.Sink
	media  *media
	pc     *webrtc.PeerConnection
	events chan event
	done   chan struct{} // closed when all is over

	payloads [2]uint8 // types, by kind

	connected atomic.Bool
	link      atomic.Pointer[ingest.LinkStats] // as last told; nil: nothing yet
	readers   sync.WaitGroup
	reading   sync.Mutex // guards closing
	closing   bool

	signal sync.Mutex // one request at a time; guards:
	offer  *offer
	etag   string // of the ICE session
	said   *sdp.SessionDescription
}

func newSession(s *Server, o *offer, key, encoder string, remote netip.AddrPort) *session {
	labels := []any{"protocol", "whip", "remote", remote}
	return &session{
		server: s, id: rand.Text(), key: key, encoder: encoder, remote: remote, offer: o,
		log: s.opts.Logger.With(labels...), labels: labels,
		events: make(chan event, maxEvents), done: make(chan struct{}),
		payloads: [2]uint8{frame.Video: o.video.payload, frame.Audio: o.audio.payload}, media: newMedia(o.video, o.audio, s.opts.MaxFrame, s.opts.patience, time.Now()),
	}
}

// admit asks the gate.
func (n *session) admit(root context.Context) error {
	ctx, cancel := context.WithCancelCause(root)
	pub, sink, err := n.server.opts.Gate.Admit(ctx, ingest.Publication{
		Protocol: "whip", Key: n.key, Remote: n.remote, Encoder: n.encoder, Link: n.linkStats,
	})
	if err != nil {
		cancel(err)
		return refusal(err)
	}
	n.pub, n.cancel, n.sink, n.media.sink = pub, cancel, sink, sink
	if l, ok := sink.(ingest.Labelled); ok {
		n.labels = append(n.labels, l.LogAttributes()...)
		n.log = n.server.opts.Logger.With(n.labels...)
	}
	return nil
}

// linkStats is ingest.Publication.Link.
func (n *session) linkStats() ingest.LinkStats {
	if l := n.link.Load(); l != nil {
		return *l
	}
	return ingest.LinkStats{}
}

// answer makes the connection and the first answer.
func (n *session) answer(k *sockets) (err error) {
	n.signal.Lock()
	defer n.signal.Unlock()
	if n.pc, err = newPeer(k, n.offer, func() { n.cancel(errManyStreams) }); err != nil {
		return err
	}
	n.pc.OnTrack(n.track)
	n.pc.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		switch s { //nolint:exhaustive // the others end nothing
		case webrtc.PeerConnectionStateConnected:
			n.connected.Store(true)
		case webrtc.PeerConnectionStateFailed:
			n.cancel(errLost)
		case webrtc.PeerConnectionStateClosed:
			n.cancel(errHungUp)
		}
	})
	return n.negotiate(n.offer)
}

// negotiate takes an offer; the caller holds signal.
func (n *session) negotiate(o *offer) error {
	n.server.mu.Lock()
	k := n.server.sockets
	n.server.mu.Unlock()
	if k == nil {
		return ingest.ErrShutdown
	}
	machine, err := k.machines()
	if err != nil {
		return err
	}
	said, err := exchange(n.pub, n.pc, o, candidates(n.server.opts.Public, k.udpAddr, k.tcpAddr, machine))
	if err != nil {
		return err
	}
	n.offer, n.said, n.etag = o, said, `"`+rand.Text()+`"`
	return nil
}

// over reports whether the session has ended, or its connection has, which ends it: a request may have found it just
// before.
func (n *session) over() bool {
	return n.pub.Err() != nil || n.pc.ConnectionState() == webrtc.PeerConnectionStateClosed
}

// track reads what the peer sends of a track until the connection ends; pion calls it on a goroutine of its own.
func (n *session) track(t *webrtc.TrackRemote, r *webrtc.RTPReceiver) {
	kind, want := frame.Video, n.media.tracks[frame.Video]
	if t.Kind() == webrtc.RTPCodecTypeAudio {
		kind, want = frame.Audio, n.media.tracks[frame.Audio]
	}
	n.reading.Lock()
	if n.closing || want == nil {
		n.reading.Unlock()
		return
	}
	n.readers.Add(2)
	n.reading.Unlock()
	go n.read(func() { n.readReports(kind, uint32(t.SSRC()), r) })
	n.read(func() {
		if n.hand(event{kind: kind, at: time.Now(), ssrc: uint32(t.SSRC())}) {
			n.readPackets(kind, t)
		}
	})
}

// read is one of the readers; a panic in what it reads ends the session.
func (n *session) read(from func()) {
	defer n.readers.Done()
	if err := fault.Guard(func() error { from(); return nil }); err != nil {
		n.cancel(err)
	}
}

// hand passes an event to the session's goroutine; false when that has ended.
func (n *session) hand(e event) bool {
	select {
	case n.events <- e:
		return true
	case <-n.pub.Done():
		return false
	}
}

func (n *session) readPackets(kind frame.Kind, t *webrtc.TrackRemote) {
	payload := n.payloads[kind]
	buf := make([]byte, receiveMTU)
	for {
		size, _, err := t.Read(buf)
		if err != nil && size == 0 {
			return
		}
		at, p := time.Now(), &rtp.Packet{}
		if err != nil || p.Unmarshal(bytes.Clone(buf[:size])) != nil || p.PayloadType != payload {
			continue
		}
		if !n.hand(event{kind: kind, at: at, packet: p}) {
			return
		}
	}
}

// readReports reads sender reports; reading alone lets pion answer what it answers by itself.
func (n *session) readReports(kind frame.Kind, ssrc uint32, r *webrtc.RTPReceiver) {
	buf := make([]byte, receiveMTU)
	for {
		size, _, err := r.Read(buf)
		if err != nil {
			return
		}
		packets, err := rtcp.Unmarshal(buf[:size])
		if err != nil {
			continue
		}
		for _, p := range packets {
			if report, ok := p.(*rtcp.SenderReport); ok && report.SSRC == ssrc && !n.hand(event{kind: kind, at: time.Now(), report: report}) {
				return
			}
		}
	}
}

// run carries the media until the session's end, and closes everything.
func (n *session) run() {
	began := time.Now()
	encoder, video, audio := n.encoder, n.offer.video.codec, n.offer.audio.codec
	n.tell("connected", func(log *slog.Logger) {
		log.Info("encoder connected", "encoder", encoder, "video", video, "audio", audio)
	})
	err := fault.Guard(n.carry)
	if cause := context.Cause(n.pub); cause != nil {
		if _, panicked := errors.AsType[*fault.PanicError](err); !panicked {
			err = cause
		}
	}
	if cerr := n.close(err); cerr != nil {
		err = cerr
	}
	if p, ok := errors.AsType[*fault.PanicError](err); ok {
		n.log.Error("session panicked", "error", p, "encoder", n.encoder, "stack", string(p.Stack))
		return
	}
	c := n.media.total()
	lasted := time.Since(began)
	n.tell("disconnected", func(log *slog.Logger) {
		log.Info("encoder disconnected", "cause", err, "encoder", encoder, "lasted", lasted, "video_frames", c.video,
			"audio_frames", c.audio, "malformed", c.malformed, "damaged", c.damaged, "packets_lost", c.lost,
			"packets_late", c.late, "key_frames_asked", c.requests)
	})
}

// tell logs that the encoder has come or gone, unless that of one stream key does so all the time. The line may be
// written when the session is long over, and has nothing of it.
func (n *session) tell(what string, line func(*slog.Logger)) {
	labels := n.labels
	n.server.comings.Log(what+" "+n.key, func(log *slog.Logger) { line(log.With(labels...)) })
}

// close ends the connection, its readers and the publication.
func (n *session) close(cause error) error {
	n.cancel(cause)
	n.reading.Lock()
	n.closing = true
	n.reading.Unlock()
	if n.pc != nil {
		if err := n.pc.GracefulClose(); err != nil {
			n.log.Debug("close peer connection", "error", err)
		}
	}
	n.readers.Wait()
	return fault.Guard(func() error { n.sink.Close(cause); return nil })
}

// carry moves media from the readers to the sink. It always returns an error: why it ended.
func (n *session) carry() error {
	began := time.Now()
	active, connected := began, false
	var ssrc uint32 // of the pictures
	ticker := time.NewTicker(tickTime)
	defer ticker.Stop()
	for {
		var err error
		var now time.Time
		select {
		case <-n.pub.Done():
			return context.Cause(n.pub)
		case now = <-ticker.C:
			err = n.media.tick(now)
			link := n.media.link()
			n.link.Store(&link)
		case e := <-n.events:
			now = time.Now()
			switch {
			case e.packet != nil:
				active = now
				err = n.media.packet(e.kind, e.packet, e.at)
			case e.report != nil:
				n.media.clocks.report(e.kind, e.report.NTPTime, e.report.RTPTime)
			case e.kind == frame.Video:
				ssrc = e.ssrc
			}
		}
		if !connected && n.connected.Load() { // from now on media is waited for
			active, connected = now, true
		}
		switch {
		case err != nil:
			return err
		case !connected && now.Sub(began) > n.server.opts.ConnectTimeout:
			return fmt.Errorf("%w: %v", errNoConnect, n.server.opts.ConnectTimeout)
		case connected && now.Sub(active) > n.server.opts.IdleTimeout:
			return fmt.Errorf("%w: no media for %v", ingest.ErrSilent, n.server.opts.IdleTimeout)
		case ssrc != 0 && n.media.wantsKey(now):
			n.askForKey(ssrc)
		}
	}
}

// askForKey sends a picture loss indication, RFC 4585 section 6.3.1. Whether it can be sent is the connection's affair.
func (n *session) askForKey(ssrc uint32) {
	if err := n.pc.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: ssrc}}); err != nil {
		n.log.Debug("ask for key frame", "error", err)
	}
}
