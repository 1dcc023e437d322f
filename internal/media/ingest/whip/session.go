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
		server:   s,
		id:       rand.Text(),
		key:      key,
		encoder:  encoder,
		remote:   remote,
		offer:    o,
		log:      s.opts.Logger.With(labels...),
		labels:   labels,
		events:   make(chan event, maxEvents),
		done:     make(chan struct{}),
		payloads: [2]uint8{frame.Video: o.video.payload, frame.Audio: o.audio.payload},
		media:    newMedia(o.video, o.audio, s.opts.MaxFrame, s.opts.patience, time.Now()),
	}
}

// admit asks the gate.
func (sess *session) admit(root context.Context) error {
	ctx, cancel := context.WithCancelCause(root)
	pub, sink, err := sess.server.opts.Gate.Admit(ctx, ingest.Publication{
		Protocol: "whip", Key: sess.key, Remote: sess.remote, Encoder: sess.encoder, Link: sess.linkStats,
	})
	if err != nil {
		cancel(err)
		return refusal(err)
	}
	sess.pub, sess.cancel, sess.sink, sess.media.sink = pub, cancel, sink, sink
	if l, ok := sink.(ingest.Labelled); ok {
		sess.labels = append(sess.labels, l.LogAttributes()...)
		sess.log = sess.server.opts.Logger.With(sess.labels...)
	}
	return nil
}

// linkStats is ingest.Publication.Link.
func (sess *session) linkStats() ingest.LinkStats {
	if l := sess.link.Load(); l != nil {
		return *l
	}
	return ingest.LinkStats{}
}

// answer makes the connection and the first answer.
func (sess *session) answer(k *sockets) (err error) {
	sess.signal.Lock()
	defer sess.signal.Unlock()
	if sess.pc, err = newPeer(k, sess.offer, func() { sess.cancel(errManyStreams) }); err != nil {
		return err
	}
	sess.pc.OnTrack(sess.track)
	sess.pc.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		switch s { //nolint:exhaustive // the others end nothing
		case webrtc.PeerConnectionStateConnected:
			sess.connected.Store(true)
		case webrtc.PeerConnectionStateFailed:
			sess.cancel(errLost)
		case webrtc.PeerConnectionStateClosed:
			sess.cancel(errHungUp)
		}
	})
	return sess.negotiate(sess.offer)
}

// negotiate takes an offer; the caller holds signal.
func (sess *session) negotiate(o *offer) error {
	sess.server.mu.Lock()
	k := sess.server.sockets
	sess.server.mu.Unlock()
	if k == nil {
		return ingest.ErrShutdown
	}
	machine, err := k.machines()
	if err != nil {
		return err
	}
	said, err := exchange(sess.pub, sess.pc, o, candidates(sess.server.opts.Public, k.udpAddr, k.tcpAddr, machine))
	if err != nil {
		return err
	}
	sess.offer, sess.said, sess.etag = o, said, `"`+rand.Text()+`"`
	return nil
}

// over reports whether the session has ended, or its connection has, which ends it: a request may have found it just
// before.
func (sess *session) over() bool {
	return sess.pub.Err() != nil || sess.pc.ConnectionState() == webrtc.PeerConnectionStateClosed
}

// track reads what the peer sends of a track until the connection ends; pion calls it on a goroutine of its own.
func (sess *session) track(t *webrtc.TrackRemote, r *webrtc.RTPReceiver) {
	kind, want := frame.Video, sess.media.tracks[frame.Video]
	if t.Kind() == webrtc.RTPCodecTypeAudio {
		kind, want = frame.Audio, sess.media.tracks[frame.Audio]
	}
	sess.reading.Lock()
	if sess.closing || want == nil {
		sess.reading.Unlock()
		return
	}
	sess.readers.Add(2)
	sess.reading.Unlock()
	go sess.read(func() { sess.readReports(kind, uint32(t.SSRC()), r) })
	sess.read(func() {
		if sess.hand(event{kind: kind, at: time.Now(), ssrc: uint32(t.SSRC())}) {
			sess.readPackets(kind, t)
		}
	})
}

// read is one of the readers; a panic in what it reads ends the session.
func (sess *session) read(from func()) {
	defer sess.readers.Done()
	if err := fault.Guard(func() error { from(); return nil }); err != nil {
		sess.cancel(err)
	}
}

// hand passes an event to the session's goroutine; false when that has ended.
func (sess *session) hand(e event) bool {
	select {
	case sess.events <- e:
		return true
	case <-sess.pub.Done():
		return false
	}
}

func (sess *session) readPackets(kind frame.Kind, t *webrtc.TrackRemote) {
	payload := sess.payloads[kind]
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
		if !sess.hand(event{kind: kind, at: at, packet: p}) {
			return
		}
	}
}

// readReports reads sender reports; reading alone lets pion answer what it answers by itself.
func (sess *session) readReports(kind frame.Kind, ssrc uint32, r *webrtc.RTPReceiver) {
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
			if report, ok := p.(*rtcp.SenderReport); ok && report.SSRC == ssrc &&
				!sess.hand(event{kind: kind, at: time.Now(), report: report}) {
				return
			}
		}
	}
}

// run carries the media until the session's end, and closes everything.
func (sess *session) run() {
	began := time.Now()
	encoder, video, audio := sess.encoder, sess.offer.video.codec, sess.offer.audio.codec
	sess.logLimited("connected", func(log *slog.Logger) {
		log.Info("encoder connected", "encoder", encoder, "video", video, "audio", audio)
	})
	err := fault.Guard(sess.carry)
	if cause := context.Cause(sess.pub); cause != nil {
		if _, panicked := errors.AsType[*fault.PanicError](err); !panicked {
			err = cause
		}
	}
	if cerr := sess.close(err); cerr != nil {
		err = cerr
	}
	if p, ok := errors.AsType[*fault.PanicError](err); ok {
		sess.log.Error("session panicked", "error", p, "encoder", sess.encoder, "stack", string(p.Stack))
		return
	}
	c := sess.media.total()
	lasted := time.Since(began)
	sess.logLimited("disconnected", func(log *slog.Logger) {
		log.Info("encoder disconnected", "reason", err, "encoder", encoder, "duration", lasted, "video_frames", c.video,
			"audio_frames", c.audio, "malformed", c.malformed, "damaged", c.damaged, "packets_lost", c.lost,
			"packets_late", c.late, "key_frames_asked", c.requests)
	})
}

// logLimited logs that the encoder has come or gone, unless that of one stream key does so all the time. The line may
// be written when the session is long over, and has nothing of it.
func (sess *session) logLimited(what string, line func(*slog.Logger)) {
	labels := sess.labels
	sess.server.comings.Log(what+" "+sess.key, func(log *slog.Logger) { line(log.With(labels...)) })
}

// close ends the connection, its readers and the publication.
func (sess *session) close(cause error) error {
	sess.cancel(cause)
	sess.reading.Lock()
	sess.closing = true
	sess.reading.Unlock()
	if sess.pc != nil {
		if err := sess.pc.GracefulClose(); err != nil {
			sess.log.Debug("close peer connection", "error", err)
		}
	}
	sess.readers.Wait()
	return fault.Guard(func() error { sess.sink.Close(cause); return nil })
}

// carry moves media from the readers to the sink. It always returns an error: why it ended.
func (sess *session) carry() error {
	began := time.Now()
	active, connected := began, false
	var ssrc uint32 // of the pictures
	ticker := time.NewTicker(tickTime)
	defer ticker.Stop()
	for {
		var err error
		var now time.Time
		select {
		case <-sess.pub.Done():
			return context.Cause(sess.pub)
		case now = <-ticker.C:
			err = sess.media.tick(now)
			link := sess.media.link()
			sess.link.Store(&link)
		case e := <-sess.events:
			now = time.Now()
			switch {
			case e.packet != nil:
				active = now
				err = sess.media.packet(e.kind, e.packet, e.at)
			case e.report != nil:
				sess.media.clocks.report(e.kind, e.report.NTPTime, e.report.RTPTime)
			case e.kind == frame.Video:
				ssrc = e.ssrc
			}
		}
		if !connected && sess.connected.Load() { // from now on media is waited for
			active, connected = now, true
		}
		switch {
		case err != nil:
			return err
		case !connected && now.Sub(began) > sess.server.opts.ConnectTimeout:
			return fmt.Errorf("%w: %v", errNoConnect, sess.server.opts.ConnectTimeout)
		case connected && now.Sub(active) > sess.server.opts.IdleTimeout:
			return fmt.Errorf("%w: no media for %v", ingest.ErrSilent, sess.server.opts.IdleTimeout)
		case ssrc != 0 && sess.media.wantsKey(now):
			sess.askForKey(ssrc)
		}
	}
}

// askForKey sends a picture loss indication, RFC 4585 section 6.3.1. Whether it can be sent is the connection's affair.
func (sess *session) askForKey(ssrc uint32) {
	if err := sess.pc.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: ssrc}}); err != nil {
		sess.log.Debug("ask for key frame", "error", err)
	}
}
