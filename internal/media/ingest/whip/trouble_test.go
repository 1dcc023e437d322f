package whip

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
)

// lossy drops packets of pictures on their way to the network.
type lossy struct {
	interceptor.NoOp
	drop func(n int) bool // the n-th packet that is sent, repeated ones too
	n    atomic.Int64
}

func (l *lossy) NewInterceptor(string) (interceptor.Interceptor, error) { return l, nil }

func (l *lossy) BindLocalStream(info *interceptor.StreamInfo, w interceptor.RTPWriter) interceptor.RTPWriter {
	if info.MimeType != webrtc.MimeTypeH264 {
		return w
	}
	return interceptor.RTPWriterFunc(func(h *rtp.Header, payload []byte, a interceptor.Attributes) (int, error) {
		if l.drop(int(l.n.Add(1))) {
			return len(payload), nil
		}
		return w.Write(h, payload, a)
	})
}

// TestLossIsRepaired loses every 13th packet once: what is asked for again comes, and no picture is missing. How long
// that may take is not this test's: the publisher and the server share a machine that may be busy.
func TestLossIsRepaired(t *testing.T) {
	t.Parallel()
	sink := ingesttest.NewRecorder()
	s := startServer(t, Options{Gate: ingesttest.Admit(key, sink), patience: time.Minute})
	p := newPublisher(t, wants{interceptor: &lossy{drop: func(n int) bool { return n%13 == 0 }}})
	p.publish(s.url)
	stop := p.start()
	sink.Until(t, "three seconds of pictures", func() bool { return len(sink.Of(frame.Video)) >= 75 })
	stop()
	p.delete()
	_ = sink.Cause(t) // was deleted
	checkVideo(t, sink)
}

// TestLossIsMended loses half a second for good: pictures go on with a key frame that was asked for, and none of those
// between.
func TestLossIsMended(t *testing.T) {
	t.Parallel()
	sink := ingesttest.NewRecorder()
	s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
	p := newPublisher(t, wants{
		noRepeat: true, interceptor: &lossy{drop: func(n int) bool { return n >= 130 && n < 170 }},
	})
	p.gop = 1000
	p.publish(s.url)
	stop := p.start()
	sink.Until(t, "four seconds of pictures", func() bool { return len(sink.Of(frame.Video)) >= 90 })
	stop()
	p.delete()
	_ = sink.Cause(t) // was deleted
	frames := sink.Of(frame.Video)
	holes := 0
	for i, f := range frames[1:] {
		if numberOf(f.Data) == numberOf(frames[i].Data)+1 {
			continue
		}
		holes++
		if !f.Key {
			t.Errorf("picture %d follows %d and is no key frame", numberOf(f.Data), numberOf(frames[i].Data))
		}
		if d, want := f.DTS-frames[i].DTS,
			time.Duration(numberOf(f.Data)-numberOf(frames[i].Data))*40*time.Millisecond; d != want {
			t.Errorf("the hole is %v long, want %v", d, want)
		}
	}
	if holes != 1 {
		t.Errorf("%d holes\n%s", holes, s.log)
	}
}

// TestBehindAHole loses single packets of short frames. A frame of one packet ends with the packet that shows the hole:
// it may refer to what is lost, and then no decoder of VP9 can read it. Nor can it read a frame that is cut: browsers
// send the beginning of one, and then a key frame in place of the rest, without a gap in the sequence numbers.
func TestBehindAHole(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		frames string // K: a key frame; 1, 2: another one of so many packets; C: one whose second packet is never sent
		lost   int    // the packet, counted from 0
		want   []int  // the frames that are written
	}{
		"none":                     {"K11K1", -1, []int{0, 1, 2, 3, 4}},
		"a frame":                  {"K111K1", 1, []int{0, 4, 5}},
		"the end of a frame":       {"K211K1", 2, []int{0, 4, 5}},
		"the beginning of a frame": {"K121K1", 2, []int{0, 1, 4, 5}},
		"the frame before a key":   {"K11K1", 2, []int{0, 1, 3, 4}},
		"a key frame":              {"K1K1K1", 2, []int{0, 1, 4, 5}},
		"a key frame before a key": {"K1KK1", 2, []int{0, 1, 3, 4}},
		"a cut frame":              {"K1CK1", -1, []int{0, 1, 3, 4}},
		"cut, and no key behind":   {"K1C1K1", -1, []int{0, 1, 4, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ingesttest.NewRecorder()
			m := newMedia(negotiated{codec: frame.VP8, rate: 90000}, negotiated{}, 1<<20, 0, at(0))
			m.sink = r
			seq := uint16(0)
			for i, kind := range tt.frames {
				data, mtu := bytes.Clone(vp8Key[:100]), uint16(1200)
				if kind != 'K' {
					data[0] |= 1 // frame_type
				}
				if kind == '2' || kind == 'C' {
					mtu = 60
				}
				packets := packed((&codecs.VP8Payloader{}).Payload(mtu, data), uint32(i*3600), &seq)
				if kind == 'C' {
					packets = packets[:1]
					seq--
				}
				for _, p := range packets {
					if int(p.SequenceNumber) == tt.lost {
						continue
					}
					if err := m.packet(frame.Video, p, at(i*40)); err != nil {
						t.Fatal(err)
					}
				}
			}
			var got []int
			for _, f := range r.Of(frame.Video) {
				got = append(got, int(f.DTS/(40*time.Millisecond)))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("the frames %v are written, want %v", got, tt.want)
			}
		})
	}
}

// TestKeyFramesAreAsked sends a key frame only when one is asked for, as browsers do.
func TestKeyFramesAreAsked(t *testing.T) {
	t.Parallel()
	m := newMedia(negotiated{codec: frame.H264, rate: 90000}, negotiated{}, 1<<20, videoPatience,
		time.Time{}.Add(time.Hour))
	m.sink = ingesttest.NewRecorder()
	began := m.began
	seq := uint16(0)
	for _, tt := range []struct {
		ms   int
		key  bool
		want bool
	}{
		{0, false, false},
		{240, false, false},
		{260, false, true},
		{400, false, false},
		{770, false, true},
		{800, true, false},
		{2600, false, false},
		{2710, false, true},
		{3000, false, false},
		{3220, false, true},
		{3300, true, false},
		{5190, false, false},
		{5210, false, true},
	} {
		now := began.Add(time.Duration(tt.ms) * time.Millisecond)
		for _, pkt := range packetsOf(t, picture(0, tt.key, 10), uint32(tt.ms*90), &seq) {
			if err := m.packet(frame.Video, pkt, now); err != nil {
				t.Fatal(err)
			}
		}
		if got := m.wantsKey(now); got != tt.want {
			t.Errorf("after %d ms a key frame is asked for: %t", tt.ms, got)
		}
	}
}

// TestRestart changes the publisher's ICE session twice while it plays, as after a change of its network.
func TestRestart(t *testing.T) {
	t.Parallel()
	sink := ingesttest.NewRecorder()
	s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
	p := newPublisher(t, wants{})
	p.publish(s.url)
	stop := p.start()
	for range 2 {
		n := len(sink.Of(frame.Video))
		sink.Until(t, "pictures", func() bool { return len(sink.Of(frame.Video)) >= n+15 })
		before := p.etag
		p.restart(s.log)
		if p.etag == before {
			t.Error("the ICE session has the same ETag")
		}
		if a := p.patch(before, fragmentOf(t, p.pc.LocalDescription().SDP)); a.status != http.StatusPreconditionFailed {
			t.Errorf("an old ETag is answered %d", a.status)
		}
		if a := p.patch(p.etag, fragmentOf(t, p.pc.LocalDescription().SDP)); a.status != http.StatusNoContent ||
			a.head.Get("ETag") != "" {
			t.Errorf("trickled candidates are answered %d with ETag %q", a.status, a.head.Get("ETag"))
		}
	}
	n := len(sink.Of(frame.Video))
	sink.Until(t, "pictures after the restarts", func() bool { return len(sink.Of(frame.Video)) >= n+25 })
	stop()
	p.delete()
	if cause := sink.Cause(t); !errors.Is(cause, ingest.ErrEncoderEnded) {
		t.Errorf("cause %v\n%s", cause, s.log)
	}
}

// gatherer completes its candidates at a given moment, as pion does: the state changes, then who is to be told is
// picked.
type gatherer struct {
	moment string
	state  webrtc.ICEGatheringState
	tell   func(webrtc.ICEGatheringState)
}

func (g *gatherer) at(moment string) {
	if g.moment != moment {
		return
	}
	g.state = webrtc.ICEGatheringStateComplete
	if g.tell != nil {
		g.tell(g.state)
	}
}

func (g *gatherer) ICEGatheringState() webrtc.ICEGatheringState {
	g.at("before the look")
	s := g.state
	g.at("after the look")
	return s
}

func (g *gatherer) OnICEGatheringStateChange(f func(webrtc.ICEGatheringState)) {
	g.at("before the handler")
	g.tell = f
	f(webrtc.ICEGatheringStateGathering)
	g.at("after the handler")
}

// TestGathered completes candidates at every moment: no end is missed.
func TestGathered(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{
		"before the handler", "after the handler", "before the look", "after the look", "later",
	} {
		g := &gatherer{moment: moment, state: webrtc.ICEGatheringStateGathering}
		done := gathered(g)
		if moment == "later" {
			select {
			case <-done:
				t.Error("complete too early")
			default:
			}
			g.at("later")
		}
		select {
		case <-done:
		default:
			t.Errorf("complete %s: not noticed", moment)
		}
	}
}

// stalled is a UDP socket at which no session gets a place while it is held.
type stalled struct {
	ice.UDPMux
	held  atomic.Bool
	asked chan struct{} // somebody waits
	free  chan struct{}
}

func (s *stalled) GetListenAddresses() []net.Addr {
	if s.held.Load() {
		close(s.asked)
		<-s.free
	}
	return s.UDPMux.GetListenAddresses()
}

// TestRestartOfEnded restarts ICE of a session that ends meanwhile, and of one that ended when it had just been found:
// neither is there.
func TestRestartOfEnded(t *testing.T) {
	t.Parallel()
	s := startServer(t, Options{Gate: ingesttest.Admit(key, ingesttest.NewRecorder())})
	s.mu.Lock()
	socket := &stalled{UDPMux: s.sockets.udp, asked: make(chan struct{}), free: make(chan struct{})}
	s.sockets.udp = socket
	s.mu.Unlock()
	a := ask(t, http.MethodPost, s.url, crlf(chromium),
		"Authorization", "Bearer "+key, "Content-Type", "application/sdp")
	n := s.find(strings.TrimPrefix(a.head.Get("Location"), "/whip/"))
	if n == nil {
		t.Fatalf("POST: %d %s", a.status, a.body)
	}
	restart := func(ufrag string) error {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, a.head.Get("Location"),
			strings.NewReader("a=ice-ufrag:"+ufrag+"\r\na=ice-pwd:PwmRiJQVs2cgYpEWmUEZDNse\r\n"))
		r.Header.Set("Content-Type", "application/trickle-ice-sdpfrag")
		r.Header.Set("If-Match", "*")
		return n.patch(httptest.NewRecorder(), r)
	}
	check := func(when string, err error) {
		if p, ok := errors.AsType[*problem](err); !ok || p.status != http.StatusNotFound || p.ours {
			t.Errorf("%s: %+v", when, err)
		}
	}
	socket.held.Store(true)
	answered := make(chan error, 1)
	go func() { answered <- restart("Next") }()
	<-socket.asked
	n.cancel(ingest.ErrEncoderEnded)
	check("ends meanwhile", <-answered)
	close(socket.free)
	<-n.done
	check("has ended", restart("Last"))
}

func (p *publisher) patch(etag, body string) reply {
	p.t.Helper()
	return ask(p.t, http.MethodPatch, p.url, body, "Authorization", "Bearer "+key, "Content-Type",
		"application/trickle-ice-sdpfrag", "If-Match", etag)
}

// fragmentOf makes a fragment of an offer.
func fragmentOf(t *testing.T, offer string) string {
	t.Helper()
	var d sdp.SessionDescription
	if err := d.UnmarshalString(offer); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("a=ice-options:trickle ice2\r\na=group:BUNDLE 0 1\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n")
	for _, a := range d.MediaDescriptions[0].Attributes {
		if a.Key == "ice-ufrag" || a.Key == "ice-pwd" || a.Key == "candidate" {
			b.WriteString("a=" + a.Key + ":" + a.Value + "\r\n")
		}
	}
	return b.String()
}

// restart makes a new ICE session, as RFC 9725 section 4.3.3 tells clients.
func (p *publisher) restart(log *ingesttest.Log) {
	p.t.Helper()
	fragment := fragmentOf(p.t, p.offer(&webrtc.OfferOptions{ICERestart: true}))
	a := p.patch("*", fragment)
	if a.status != http.StatusOK || a.head.Get("Content-Type") != "application/trickle-ice-sdpfrag" {
		p.t.Fatalf("PATCH: %d %s\n%s", a.status, a.body, log)
	}
	p.etag = a.head.Get("ETag")
	f := map[string][]string{}
	for line := range strings.Lines(a.body) {
		if k, v, ok := strings.Cut(strings.TrimRight(strings.TrimPrefix(line, "a="), "\r\n"), ":"); ok {
			f[k] = append(f[k], v)
		}
	}
	var answer sdp.SessionDescription
	if err := answer.UnmarshalString(p.answer); err != nil {
		p.t.Fatal(err)
	}
	if len(f["ice-ufrag"]) != 1 || len(f["candidate"]) == 0 || !strings.Contains(a.body, "a=ice-lite\r\n") {
		p.t.Fatalf("answer to PATCH: %s", a.body)
	}
	answer.Origin.SessionVersion++
	for _, m := range answer.MediaDescriptions {
		for i, a := range m.Attributes {
			switch a.Key {
			case "ice-ufrag":
				if a.Value == f["ice-ufrag"][0] {
					p.t.Error("the restart has the same ufrag")
				}
				m.Attributes[i].Value = f["ice-ufrag"][0]
			case "ice-pwd":
				m.Attributes[i].Value = f["ice-pwd"][0]
			}
		}
	}
	b, err := answer.Marshal()
	if err != nil {
		p.t.Fatal(err)
	}
	p.answer = string(b)
	if err := p.pc.SetRemoteDescription(webrtc.SessionDescription{
		Type: webrtc.SDPTypeAnswer, SDP: p.answer,
	}); err != nil {
		p.t.Fatal(err)
	}
}

// TestEnds lists how a publication may end but by DELETE.
func TestEnds(t *testing.T) {
	t.Parallel()
	errOwner := errors.New("disabled by its owner")
	for name, tt := range map[string]struct {
		o    Options
		end  func(t *testing.T, s *server, p *publisher, drop context.CancelCauseFunc)
		want error
	}{
		"dropped by the owner": {
			end:  func(_ *testing.T, _ *server, _ *publisher, drop context.CancelCauseFunc) { drop(errOwner) },
			want: errOwner,
		},
		"shutdown": {
			end:  func(_ *testing.T, s *server, _ *publisher, _ context.CancelCauseFunc) { s.stop() },
			want: ingest.ErrShutdown,
		},
		"hung up": {
			end: func(_ *testing.T, _ *server, p *publisher, _ context.CancelCauseFunc) { p.hangUp() }, want: errHungUp,
		},
		"silent": {
			o:   Options{IdleTimeout: 3 * time.Second},
			end: func(*testing.T, *server, *publisher, context.CancelCauseFunc) {}, want: ingest.ErrSilent,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := ingesttest.NewRecorder()
			var drop context.CancelCauseFunc
			tt.o.Gate = ingesttest.Gate(func(
				ctx context.Context, _ ingest.Publication,
			) (context.Context, ingest.Sink, error) {
				ctx, drop = context.WithCancelCause(ctx)
				return ctx, sink, nil
			})
			s := startServer(t, tt.o)
			p := newPublisher(t, wants{})
			p.publish(s.url)
			stop := p.start()
			sink.Until(t, "pictures", func() bool { return len(sink.Of(frame.Video)) >= 10 })
			stop()
			tt.end(t, s, p, drop)
			if cause := sink.Cause(t); !errors.Is(cause, tt.want) {
				t.Errorf("cause %v, want %v\n%s", cause, tt.want, s.log)
			}
			drop(nil)
		})
	}
}

// TestNeverConnects gives a session up whose publisher does not come.
func TestNeverConnects(t *testing.T) {
	t.Parallel()
	sink := ingesttest.NewRecorder()
	s := startServer(t, Options{Gate: ingesttest.Admit(key, sink), ConnectTimeout: 200 * time.Millisecond})
	p := newPublisher(t, wants{})
	a := ask(t, http.MethodPost, s.url, p.offer(nil), "Authorization", "Bearer "+key, "Content-Type", "application/sdp")
	if a.status != http.StatusCreated {
		t.Fatalf("POST: %d %s", a.status, a.body)
	}
	if cause := sink.Cause(t); !errors.Is(cause, errNoConnect) {
		t.Errorf("cause %v", cause)
	}
}
