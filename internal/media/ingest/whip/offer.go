package whip

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pion/sdp/v3"

	"millrace/internal/media/frame"
)

// problem is a no to a request: an HTTP status and what to tell anyone who looks at it, RFC 9457.
type problem struct {
	status int
	detail string
	err    error // why, for the log; nil: as said
	ours   bool  // the fault is this service's
}

func (p *problem) Error() string {
	if p.err != nil {
		return p.err.Error()
	}
	return p.detail
}

func (p *problem) Unwrap() error { return p.err }

func malformed(format string, args ...any) error {
	return &problem{status: 400, detail: fmt.Sprintf(format, args...)}
}

func unprocessable(format string, args ...any) error {
	return &problem{status: 422, detail: fmt.Sprintf(format, args...)}
}

// negotiated is the one codec that a track is taken in.
type negotiated struct {
	codec    frame.Codec // "" when there is no such track
	payload  uint8
	repeat   uint8 // payload type of its repetitions, RFC 4588; 0: none
	rate     uint32
	channels uint16
	format   string   // the offer's fmtp
	feedback []string // the offer's rtcp-fb
}

// offer is an SDP offer that can be answered.
type offer struct {
	video, audio negotiated
	// sdp is the offer as the peer connection sees it: with what is known here and one codec for each track, and
	// nothing else. Candidates are left out: this side is ICE-lite and connects to nobody.
	sdp *sdp.SessionDescription

	ufrag, pwd string
}

const maxCodecs = 256 // payload types are 7 bits

// parseOffer reads an offer, RFC 9725 section 4.2. codecs are those of video that may be chosen, the best first.
func parseOffer(body string, codecs []frame.Codec) (*offer, error) {
	// A line holds neither, RFC 8866 section 9, and one that does is read differently each time.
	if strings.ContainsAny(strings.ReplaceAll(body, "\r\n", "\n"), "\r\x00") {
		return nil, malformed("the offer is not SDP: a line has a carriage return or a zero byte in it")
	}
	var in sdp.SessionDescription
	if err := in.UnmarshalString(body); err != nil {
		return nil, malformed("the offer is not SDP")
	}
	if len(in.MediaDescriptions) == 0 {
		return nil, unprocessable("the offer has no media: add an audio or a video track")
	}
	o := &offer{sdp: &sdp.SessionDescription{
		Origin: in.Origin, SessionName: "-", TimeDescriptions: []sdp.TimeDescription{{}},
	}}
	if _, lite := in.Attribute("ice-lite"); lite {
		return nil, unprocessable("the offer says ice-lite, and so does this service: one of the two must connect")
	}
	var mids []string
	for i, m := range in.MediaDescriptions {
		section, err := o.section(&in, m, codecs)
		if err != nil {
			return nil, err
		}
		mid, _ := section.Attribute("mid")
		if slices.Contains(mids, mid) {
			return nil, malformed("two sections of the offer have the same mid")
		}
		mids = append(mids, mid)
		if err := o.transport(&in, m, section, i == 0); err != nil {
			return nil, err
		}
		o.sdp.MediaDescriptions = append(o.sdp.MediaDescriptions, section)
	}
	if err := bundled(&in, mids); err != nil {
		return nil, err
	}
	o.sdp.Attributes = []sdp.Attribute{{Key: "group", Value: "BUNDLE " + strings.Join(mids, " ")}}
	return o, nil
}

// bundled checks that all sections share one transport, RFC 9725 section 4.4.1.
func bundled(in *sdp.SessionDescription, mids []string) error {
	if len(mids) == 1 {
		return nil
	}
	group, _ := in.Attribute("group")
	words := strings.Fields(group)
	if len(words) != len(mids)+1 || words[0] != "BUNDLE" || words[1] != mids[0] {
		return unprocessable("the offer's tracks are not in one BUNDLE group: use the bundle policy max-bundle")
	}
	for _, mid := range mids {
		if !slices.Contains(words[1:], mid) {
			return unprocessable("the offer's BUNDLE group lacks a track: use the bundle policy max-bundle")
		}
	}
	return nil
}

// section checks a media section and makes the one that is negotiated.
func (o *offer) section(
	in *sdp.SessionDescription, m *sdp.MediaDescription, codecs []frame.Codec,
) (*sdp.MediaDescription, error) {
	kind := m.MediaName.Media
	into := map[string]*negotiated{"audio": &o.audio, "video": &o.video}[kind]
	switch {
	case kind == "application":
		return nil, unprocessable("the offer has a data channel: only audio and video are taken")
	case into == nil:
		return nil, unprocessable("the offer has a section that is neither audio nor video")
	case into.codec != "":
		return nil, unprocessable("the offer has more than one %s track: one audio and one video track are taken", kind)
	case !slices.Contains(m.MediaName.Protos, "SAVPF"):
		return nil, unprocessable("the offer's %s is not UDP/TLS/RTP/SAVPF", kind)
	}
	if _, muxed := m.Attribute("rtcp-mux"); !muxed {
		return nil, unprocessable("the offer's %s has no rtcp-mux", kind)
	}
	if direction(in, m) != "send" {
		return nil, unprocessable("the offer's %s is not sendonly: nothing is sent to publishers", kind)
	}
	mid, _ := m.Attribute("mid")
	if mid == "" || len(mid) > 64 || strings.ContainsAny(mid, " \t") {
		return nil, malformed("a section of the offer has no usable mid")
	}
	chosen, err := choose(m, codecs)
	if err != nil {
		return nil, err
	}
	*into = chosen
	return chosen.section(m, mid), nil
}

// direction is "send" for sendonly and sendrecv, which is the default, RFC 8866 section 6.7.
func direction(in *sdp.SessionDescription, m *sdp.MediaDescription) string {
	for _, attributes := range [][]sdp.Attribute{m.Attributes, in.Attributes} {
		for _, a := range attributes {
			switch a.Key {
			case "sendonly", "sendrecv":
				return "send"
			case "recvonly", "inactive":
				return a.Key
			}
		}
	}
	return "send"
}

// transport checks who is at the other end and how to talk to it. With BUNDLE the first section says it for all, RFC
// 9143 section 7.2.
func (o *offer) transport(in *sdp.SessionDescription, m, out *sdp.MediaDescription, first bool) error {
	find := func(key string) string {
		if v, ok := m.Attribute(key); ok {
			return v
		}
		v, _ := in.Attribute(key)
		return v
	}
	if first {
		o.ufrag, o.pwd = find("ice-ufrag"), find("ice-pwd")
		if err := credentials(o.ufrag, o.pwd); err != nil {
			return err
		}
		digest, setup := find("fingerprint"), find("setup")
		if len(strings.Fields(digest)) != 2 || len(digest) > 512 {
			return malformed("the offer has no fingerprint")
		}
		if setup != "actpass" && setup != "active" {
			return unprocessable("the offer's setup is %q: it must be actpass or active", clip(setup))
		}
		o.sdp.Attributes = append(o.sdp.Attributes, sdp.Attribute{Key: "fingerprint", Value: digest})
	}
	digest, _ := o.sdp.Attribute("fingerprint")
	out.WithICECredentials(o.ufrag, o.pwd).WithValueAttribute("fingerprint", digest).
		WithValueAttribute("setup", "actpass")
	return nil
}

// credentials checks what ICE knows a peer by, RFC 8839 section 5.4.
func credentials(ufrag, pwd string) error {
	ice := func(s string, least int) bool {
		return len(s) >= least && len(s) <= 256 && !strings.ContainsFunc(s, func(c rune) bool {
			return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '+' && c != '/'
		})
	}
	if !ice(ufrag, 4) || !ice(pwd, 22) {
		return malformed("no usable ice-ufrag and ice-pwd")
	}
	return nil
}

// clip makes a part of what came from outside fit for an answer or a log.
func clip(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return -1
		}
		return c
	}, s)
	return s[:min(len(s), 80)]
}

// choose picks the codec of a section: of those of video the first that the offer has at all, in the offer's own order
// of its variants.
func choose(m *sdp.MediaDescription, codecs []frame.Codec) (negotiated, error) {
	offered, err := offeredCodecs(m)
	if err != nil {
		return negotiated{}, err
	}
	if m.MediaName.Media == "audio" {
		codecs = []frame.Codec{frame.Opus}
	}
	for _, c := range codecs {
		for _, n := range offered {
			if n.codec == c {
				n.repeat = repeats(m, n.payload)
				return n, nil
			}
		}
	}
	names := make([]string, len(codecs))
	for i, c := range codecs {
		names[i] = map[frame.Codec]string{
			frame.H264: "H.264 (packetization mode 1)", frame.AV1: "AV1", frame.VP9: "VP9 (profile 0)",
			frame.VP8: "VP8", frame.Opus: "Opus",
		}[c]
	}
	return negotiated{}, unprocessable("the offer's %s has no codec that is taken: %s", m.MediaName.Media,
		strings.Join(names, ", "))
}

// offeredCodecs are those of a section that can be read here, in the offer's order.
func offeredCodecs(m *sdp.MediaDescription) ([]negotiated, error) {
	if len(m.MediaName.Formats) > maxCodecs {
		return nil, malformed("a section of the offer has %d payload types", len(m.MediaName.Formats))
	}
	var out []negotiated
	for _, format := range m.MediaName.Formats {
		payload, err := strconv.ParseUint(format, 10, 7)
		if err != nil {
			return nil, malformed("a payload type of the offer is not a number below 128")
		}
		n := negotiated{payload: uint8(payload), format: about(m, "fmtp", format)}
		encoding := strings.Split(strings.ToLower(about(m, "rtpmap", format)), "/")
		if len(encoding) < 2 {
			continue
		}
		p := parameters(n.format)
		switch encoding[0] + "/" + encoding[1] {
		case "opus/48000":
			if n.codec, n.rate, n.channels = frame.Opus, 48000, 2; len(encoding) < 3 || encoding[2] != "2" {
				continue // RFC 7587 section 7: always two
			}
		case "h264/90000":
			if p["packetization-mode"] != "1" || len(p["profile-level-id"]) != 6 {
				continue
			}
			n.codec, n.rate = frame.H264, 90000
		case "av1/90000":
			n.codec, n.rate = frame.AV1, 90000
		case "vp9/90000":
			if id := p["profile-id"]; id != "" && id != "0" {
				continue // more bits or colours than browsers play
			}
			n.codec, n.rate = frame.VP9, 90000
		case "vp8/90000":
			n.codec, n.rate = frame.VP8, 90000
		default:
			continue
		}
		for _, a := range m.Attributes {
			if rest, ok := strings.CutPrefix(a.Value, format+" "); ok && a.Key == "rtcp-fb" && len(n.feedback) < 16 {
				n.feedback = append(n.feedback, rest)
			}
		}
		out = append(out, n)
	}
	return out, nil
}

// about is what an attribute says of a payload type.
func about(m *sdp.MediaDescription, key, payload string) string {
	for _, a := range m.Attributes {
		if rest, ok := strings.CutPrefix(a.Value, payload+" "); ok && a.Key == key {
			return rest
		}
	}
	return ""
}

// parameters splits an fmtp.
func parameters(format string) map[string]string {
	p := map[string]string{}
	for part := range strings.SplitSeq(format, ";") {
		k, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		p[strings.ToLower(k)] = v
	}
	return p
}

// repeats is the payload type in which packets of a payload type are repeated; 0 when they are not.
func repeats(m *sdp.MediaDescription, payload uint8) uint8 {
	for _, format := range m.MediaName.Formats {
		n, err := strconv.ParseUint(format, 10, 7)
		if err == nil && strings.EqualFold(about(m, "rtpmap", format), "rtx/90000") &&
			parameters(about(m, "fmtp", format))["apt"] == strconv.Itoa(int(payload)) {
			return uint8(n)
		}
	}
	return 0
}

// section is the media section with this codec alone.
func (n *negotiated) section(m *sdp.MediaDescription, mid string) *sdp.MediaDescription {
	payload := strconv.Itoa(int(n.payload))
	out := &sdp.MediaDescription{
		MediaName: sdp.MediaName{
			Media:   m.MediaName.Media,
			Port:    sdp.RangedPort{Value: 9},
			Protos:  []string{"UDP", "TLS", "RTP", "SAVPF"},
			Formats: []string{payload},
		},
		ConnectionInformation: &sdp.ConnectionInformation{
			NetworkType: "IN",
			AddressType: "IP4",
			Address:     &sdp.Address{Address: "0.0.0.0"},
		},
	}
	out.WithValueAttribute("mid", mid).WithPropertyAttribute("sendonly").WithPropertyAttribute("rtcp-mux")
	out.WithValueAttribute("rtpmap", payload+" "+about(m, "rtpmap", payload))
	if n.format != "" {
		out.WithValueAttribute("fmtp", payload+" "+n.format)
	}
	for _, f := range n.feedback {
		out.WithValueAttribute("rtcp-fb", payload+" "+f)
	}
	if n.repeat != 0 {
		repeat := strconv.Itoa(int(n.repeat))
		out.MediaName.Formats = append(out.MediaName.Formats, repeat)
		out.WithValueAttribute("rtpmap", repeat+" rtx/90000").WithValueAttribute("fmtp", repeat+" apt="+payload)
	}
	for _, a := range m.Attributes {
		// only what the congestion control needs: sections are told apart by payload types
		if a.Key == "extmap" && strings.HasSuffix(a.Value, " "+sdp.TransportCCURI) {
			out.WithValueAttribute("extmap", a.Value)
			break
		}
	}
	return sources(out, m)
}

// sources copies the one stream of a track, and that of its repetitions.
func sources(out, m *sdp.MediaDescription) *sdp.MediaDescription {
	var ssrcs []string
	for _, a := range m.Attributes {
		words := strings.Fields(a.Value)
		switch {
		case a.Key == "ssrc-group" && len(words) == 3 && words[0] == "FID" && isSSRC(words[1]) && isSSRC(words[2]) &&
			words[1] != words[2]:
			out.WithValueAttribute("ssrc-group", strings.Join(words, " "))
			for _, s := range words[1:] {
				out.WithValueAttribute("ssrc", s+" cname:publisher")
			}
			return out
		case a.Key == "ssrc" && len(words) > 0 && isSSRC(words[0]):
			ssrcs = append(ssrcs, words[0])
		}
	}
	if len(ssrcs) > 0 {
		out.WithValueAttribute("ssrc", ssrcs[0]+" cname:publisher")
	}
	return out
}

func isSSRC(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil && s != "0"
}

// restarted is the offer with other ICE parameters, as a new version of it.
func (o *offer) restarted(ufrag, pwd string) *offer {
	next := *o
	next.ufrag, next.pwd = ufrag, pwd
	in := *o.sdp
	in.Origin.SessionVersion++
	in.MediaDescriptions = nil
	for _, m := range o.sdp.MediaDescriptions {
		copied := *m
		copied.Attributes = slices.Clone(m.Attributes)
		for i, a := range copied.Attributes {
			switch a.Key {
			case "ice-ufrag":
				copied.Attributes[i].Value = ufrag
			case "ice-pwd":
				copied.Attributes[i].Value = pwd
			}
		}
		in.MediaDescriptions = append(in.MediaDescriptions, &copied)
	}
	next.sdp = &in
	return &next
}

// text is the offer for the peer connection.
func (o *offer) text() (string, error) {
	b, err := o.sdp.Marshal()
	if err != nil {
		return "", fmt.Errorf("write offer: %w", err)
	}
	return string(b), nil
}
