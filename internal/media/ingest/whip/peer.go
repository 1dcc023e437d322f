package whip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/nack"
	"github.com/pion/interceptor/pkg/report"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/sdp/v3"
	"github.com/pion/transport/v4/packetio"
	"github.com/pion/webrtc/v4"

	"millrace/internal/media/frame"
)

const (
	gatherTime  = 5 * time.Second
	receiveMTU  = 2048
	maxStreams  = 16        // RTP and RTCP streams of a session; one track has four
	streamBytes = 1_000_000 // of a stream that wait to be read

	disconnectTime = 5 * time.Second
	failTime       = 30 * time.Second // a session without media ends before; there is time for an ICE restart
)

// newPeer makes the peer connection for an offer. tooMany is called when the peer opens more streams than it can have
// any use for.
func newPeer(k *sockets, o *offer, tooMany func()) (*webrtc.PeerConnection, error) {
	engine := &webrtc.MediaEngine{}
	if err := errors.Join(register(engine, o.video, webrtc.RTPCodecTypeVideo),
		register(engine, o.audio, webrtc.RTPCodecTypeAudio)); err != nil {
		return nil, err
	}
	registry := &interceptor.Registry{}
	again, err1 := nack.NewGeneratorInterceptor(nack.GeneratorSize(1024), nack.GeneratorInterval(40*time.Millisecond),
		nack.WithGeneratorLoggerFactory(k.loggers))
	reports, err2 := report.NewReceiverInterceptor(report.WithReceiverLoggerFactory(k.loggers))
	congestion, err3 := twcc.NewSenderInterceptor(twcc.WithLoggerFactory(k.loggers))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("make interceptors: %w", err)
	}
	registry.Add(again)
	registry.Add(reports)
	registry.Add(congestion)

	var set webrtc.SettingEngine
	set.LoggerFactory = k.loggers
	set.SetLite(true)
	set.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	set.SetIncludeLoopbackCandidate(true) // what is told to the peer is chosen elsewhere
	set.SetICETimeouts(disconnectTime, failTime, 2*time.Second)
	set.SetReceiveMTU(receiveMTU)
	set.SetSRTPReplayProtectionWindow(1024)
	set.SetSRTCPReplayProtectionWindow(256)
	var networks []webrtc.NetworkType
	if k.udp != nil {
		set.SetICEUDPMux(k.udp)
		networks = append(networks, webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6)
	}
	if k.tcp != nil {
		set.SetICETCPMux(k.tcp)
		networks = append(networks, webrtc.NetworkTypeTCP4, webrtc.NetworkTypeTCP6)
	}
	set.SetNetworkTypes(networks)
	if err := set.SetAnsweringDTLSRole(webrtc.DTLSRoleServer); err != nil {
		return nil, fmt.Errorf("set DTLS role: %w", err)
	}
	var streams atomic.Int32
	set.BufferFactory = func(packetio.BufferPacketType, uint32) io.ReadWriteCloser {
		b := packetio.NewBuffer()
		b.SetLimitSize(streamBytes)
		if streams.Add(1) > maxStreams {
			b.SetLimitSize(1)
			tooMany()
		}
		return b
	}
	api := webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(registry),
		webrtc.WithSettingEngine(set))
	pc, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, fmt.Errorf("make peer connection: %w", err)
	}
	return pc, nil
}

// mimes are pion's names of the codecs.
var mimes = map[frame.Codec]string{ //nolint:gochecknoglobals // a table
	frame.H264: webrtc.MimeTypeH264, frame.AV1: webrtc.MimeTypeAV1, frame.VP9: webrtc.MimeTypeVP9,
	frame.VP8: webrtc.MimeTypeVP8, frame.Opus: webrtc.MimeTypeOpus,
}

// register lets the engine know a track's codec as the offer has it, and what to tell the sender about how it arrives.
func register(engine *webrtc.MediaEngine, n negotiated, kind webrtc.RTPCodecType) error {
	if n.codec == "" {
		return nil
	}
	feedback := []webrtc.RTCPFeedback{{Type: webrtc.TypeRTCPFBTransportCC}, {Type: webrtc.TypeRTCPFBNACK}}
	if kind == webrtc.RTPCodecTypeVideo {
		feedback = append(feedback, webrtc.RTCPFeedback{
			Type:      webrtc.TypeRTCPFBNACK,
			Parameter: "pli",
		}, webrtc.RTCPFeedback{Type: webrtc.TypeRTCPFBCCM, Parameter: "fir"})
	}
	codec := webrtc.RTPCodecParameters{
		PayloadType: webrtc.PayloadType(n.payload), RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType:     mimes[n.codec],
			ClockRate:    n.rate,
			Channels:     n.channels,
			SDPFmtpLine:  n.format,
			RTCPFeedback: feedback,
		},
	}
	if err := engine.RegisterCodec(codec, kind); err != nil {
		return fmt.Errorf("register codec: %w", err)
	}
	if n.repeat != 0 {
		repeat := webrtc.RTPCodecParameters{
			PayloadType: webrtc.PayloadType(n.repeat), RTPCodecCapability: webrtc.RTPCodecCapability{
				MimeType: webrtc.MimeTypeRTX, ClockRate: n.rate, SDPFmtpLine: fmt.Sprintf("apt=%d", n.payload),
			},
		}
		if err := engine.RegisterCodec(repeat, kind); err != nil {
			return fmt.Errorf("register codec of repetitions: %w", err)
		}
	}
	if err := engine.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: sdp.TransportCCURI},
		kind); err != nil {
		return fmt.Errorf("register header extension: %w", err)
	}
	return nil
}

// exchange gives the peer connection an offer and returns its answer, with the given candidates.
func exchange(
	ctx context.Context, pc *webrtc.PeerConnection, o *offer, lines []string,
) (*sdp.SessionDescription, error) {
	text, err := o.text()
	if err != nil {
		return nil, err
	}
	if err = pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: text}); err != nil {
		return nil, fmt.Errorf("take offer: %w", err)
	}
	answer, err := pc.CreateAnswer(nil)
	if err != nil {
		return nil, fmt.Errorf("make answer: %w", err)
	}
	done := gathered(pc)
	if err = pc.SetLocalDescription(answer); err != nil {
		return nil, fmt.Errorf("take answer: %w", err)
	}
	timeout := time.NewTimer(gatherTime)
	defer timeout.Stop()
	select { // this opens the session's places at the sockets; nobody else is asked
	case <-done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-timeout.C:
		return nil, errors.New("gather candidates: no end of it")
	}
	var out sdp.SessionDescription
	if err := out.UnmarshalString(pc.LocalDescription().SDP); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	for i, m := range out.MediaDescriptions {
		var kept []sdp.Attribute
		for _, a := range m.Attributes {
			if a.Key != "candidate" && a.Key != "end-of-candidates" {
				kept = append(kept, a)
			}
		}
		m.Attributes = kept
		if i > 0 {
			continue // RFC 9143 section 9: with BUNDLE they stand in the first section
		}
		for _, l := range lines {
			m.Attributes = append(m.Attributes, sdp.Attribute{Key: "candidate", Value: l})
		}
		m.WithPropertyAttribute("end-of-candidates")
	}
	return &out, nil
}

// gathering is what a peer connection tells about its candidates.
type gathering interface {
	ICEGatheringState() webrtc.ICEGatheringState
	OnICEGatheringStateChange(f func(webrtc.ICEGatheringState))
}

// gathered gives a channel that is closed when the candidates are complete. An ICE restart gathers from when the offer
// is taken, and pion's GatheringCompletePromise can miss an end that comes while it is made: pion first picks whom to
// tell and then changes the state, and a promise made between the two learns of neither. Whom to tell about a change of
// state is picked after the change: one of the two below always sees it.
func gathered(g gathering) <-chan struct{} {
	done := make(chan struct{})
	end := sync.OnceFunc(func() { close(done) })
	g.OnICEGatheringStateChange(func(s webrtc.ICEGatheringState) {
		if s == webrtc.ICEGatheringStateComplete {
			end()
		}
	})
	if g.ICEGatheringState() == webrtc.ICEGatheringStateComplete {
		end()
	}
	return done
}

// iceFragment is the ICE part of an answer, RFC 9725 section 4.3.3.
func iceFragment(answer *sdp.SessionDescription) string {
	var b strings.Builder
	line := func(a sdp.Attribute) {
		b.WriteString("a=" + a.Key)
		if a.Value != "" {
			b.WriteString(":" + a.Value)
		}
		b.WriteString("\r\n")
	}
	for _, a := range answer.Attributes {
		if a.Key == "ice-lite" || a.Key == "ice-options" || a.Key == "group" {
			line(a)
		}
	}
	m := answer.MediaDescriptions[0]
	b.WriteString("m=" + m.MediaName.String() + "\r\n")
	for _, a := range m.Attributes {
		switch a.Key {
		case "mid", "ice-ufrag", "ice-pwd", "ice-options", "candidate", "end-of-candidates":
			line(a)
		}
	}
	return b.String()
}
