package whip

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"

	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/opus"
	"millrace/internal/media/codec/vp8"
	"millrace/internal/media/codec/vp9"
	"millrace/internal/media/frame"
)

// maxPackets bounds the packets of one frame; its bytes are bounded by Options.MaxFrame.
const maxPackets = 8192

var (
	errPayload = errors.New("RTP payload can't be read")
	errNoFrame = errors.New("nothing to show")
	errTorn    = errors.New("the key frame's parameters are lost")
)

// assembler puts the packets of one timestamp together. A frame with a hole is dropped whole.
type assembler struct {
	payloads  [][]byte
	size      int
	ts        uint32
	open      bool // packets of ts are being put together
	broken    bool // those of ts are dropped until the next one
	torn      bool // packets in front of the first one are lost; whether they were of this frame nobody knows
	limit     int  // bytes of a frame
	single    bool // every packet is a frame
	marked    bool // the last packet of each frame has the marker
	first     waiting
	last      waiting
	headCheck func(payload []byte) bool // whether a payload begins a frame's part
}

// add takes the next packet in order; hole says that packets in front of it are lost. done is called with a frame that
// ended before or with it, and damage when one is dropped, before done of any frame behind that.
func (a *assembler) add(w waiting, hole bool, done func(a *assembler), damage func()) {
	p := w.packet
	if hole {
		damage()
		a.reset()
		a.broken, a.torn, a.ts = false, true, p.Timestamp
		if len(p.Payload) > 0 && a.headCheck != nil && !a.headCheck(p.Payload) {
			a.broken = true
		}
	}
	if len(p.Payload) == 0 { // padding, which probes the network
		return
	}
	if p.Timestamp != a.ts || a.single {
		switch {
		case !a.open || a.broken:
		case a.marked: // browsers drop what waits to be sent when a key frame comes, and no number is missing
			damage()
		default:
			done(a)
		}
		a.reset()
		a.broken, a.torn, a.ts = false, false, p.Timestamp
	}
	if a.broken {
		return
	}
	if !a.open {
		a.open, a.first = true, w
	}
	a.last = w
	a.payloads = append(a.payloads, p.Payload)
	a.size += len(p.Payload)
	if a.size > a.limit || len(a.payloads) > maxPackets {
		damage()
		a.reset()
		a.broken = true
		return
	}
	if p.Marker || a.single {
		done(a)
		a.reset()
	}
}

func (a *assembler) reset() {
	clear(a.payloads)
	a.payloads, a.size, a.open = a.payloads[:0], 0, false
}

// depacketizer makes a sample of one frame's payloads, and its configuration when it has one.
type depacketizer interface {
	// sample returns the frame in the form of frame.Frame.Data; its config is nil when the frame says none. torn: its
	// beginning may be lost. It is errTorn when it is a key frame without the parameters that come in front of one.
	sample(payloads [][]byte, torn bool) (data []byte, key bool, config *frame.Config, err error)
	// head reports whether a payload can be the first of a frame.
	head(payload []byte) bool
}

func newDepacketizer(c frame.Codec) depacketizer {
	switch c { //nolint:exhaustive // what an offer may have
	case frame.AV1:
		return &av1Payloads{}
	case frame.VP9:
		return &vp9Payloads{}
	case frame.VP8:
		return &vp8Payloads{}
	case frame.Opus:
		return &opusPayloads{}
	default:
		return &h264Payloads{}
	}
}

// gather runs the payloads of one frame through one of pion's depacketizers.
func gather(d rtp.Depacketizer, payloads [][]byte) ([]byte, error) {
	size := 0
	for _, p := range payloads {
		size += len(p) + 8
	}
	out := make([]byte, 0, size)
	for _, p := range payloads {
		b, err := d.Unmarshal(p)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errPayload, err)
		}
		out = append(out, b...)
	}
	return out, nil
}

// h264Payloads reads RFC 6184 in packetization mode 1. Parameter sets come in front of each key frame; those of the
// last one hold until then.
type h264Payloads struct{ sps, pps []byte }

func (*h264Payloads) head(p []byte) bool { return (&codecs.H264Packet{}).IsPartitionHead(p) }

func (h *h264Payloads) sample(payloads [][]byte, torn bool) (data []byte, key bool, config *frame.Config, err error) {
	au, err := gather(&codecs.H264Packet{IsAVC: true}, payloads)
	if err != nil {
		return nil, false, nil, err
	}
	if err = h264.Check(au); err != nil {
		return nil, false, nil, fmt.Errorf("%w: %w", errPayload, err)
	}
	changed, picture, whole := false, false, !torn
	for nal := range h264.NALs(au, 4) {
		t := h264.Type(nal)
		whole = whole || t == h264.TypeSPS
		switch {
		case t == h264.TypeSPS && !bytes.Equal(nal, h.sps):
			h.sps, changed = bytes.Clone(nal), true
		case t == h264.TypePPS && !bytes.Equal(nal, h.pps):
			h.pps, changed = bytes.Clone(nal), true
		case t >= h264.TypeNonIDR && t <= h264.TypeIDR:
			picture = true
		}
	}
	if changed && h.sps != nil && h.pps != nil {
		c, cerr := h264.TrackConfig(h.sps, h.pps)
		if cerr != nil {
			return nil, false, nil, fmt.Errorf("%w: %w", errPayload, cerr)
		}
		config = &c
	}
	key = h264.HasIDR(au)
	switch {
	case !picture:
		err = errNoFrame
	case key && !whole:
		err = errTorn
	}
	return au, key, config, err
}

// av1Payloads reads the AV1 RTP payload format: a sequence header comes in front of each key frame.
type av1Payloads struct{ header []byte }

func (*av1Payloads) head(p []byte) bool { return (&codecs.AV1Depacketizer{}).IsPartitionHead(p) }

func (a *av1Payloads) sample(payloads [][]byte, torn bool) (data []byte, key bool, config *frame.Config, err error) {
	tu, err := gather(&codecs.AV1Depacketizer{}, payloads)
	if err != nil {
		return nil, false, nil, err
	}
	if tu, err = av1.Sample(tu); err != nil {
		return nil, false, nil, fmt.Errorf("%w: %w", errPayload, err)
	}
	key = av1.IsKey(tu)
	header := av1.SequenceHeader(tu)
	if torn && key && header == nil {
		return nil, false, nil, errTorn
	}
	if header != nil && !bytes.Equal(header, a.header) {
		c, cerr := av1.TrackConfig(bytes.Clone(header))
		if cerr != nil {
			return nil, false, nil, fmt.Errorf("%w: %w", errPayload, cerr)
		}
		a.header, config = c.Header, &c
	}
	return tu, key, config, nil
}

// vp9Payloads reads RFC 9628. A key frame says its size itself.
type vp9Payloads struct{ last frame.Config }

func (*vp9Payloads) head(p []byte) bool { return (&codecs.VP9Packet{}).IsPartitionHead(p) }

func (v *vp9Payloads) sample(payloads [][]byte, _ bool) (data []byte, key bool, config *frame.Config, err error) {
	if data, err = gather(&codecs.VP9Packet{}, payloads); err != nil {
		return nil, false, nil, err
	}
	if len(data) == 0 {
		return nil, false, nil, errNoFrame
	}
	if key = vp9.IsKey(data); !key {
		return data, false, nil, nil
	}
	c, err := vp9.TrackConfig(nil, data)
	if err != nil {
		return nil, false, nil, fmt.Errorf("%w: %w", errPayload, err)
	}
	return data, true, renewed(&v.last, c), nil
}

// vp8Payloads reads RFC 7741. A key frame says its size itself.
type vp8Payloads struct{ last frame.Config }

func (*vp8Payloads) head(p []byte) bool { return (&codecs.VP8Packet{}).IsPartitionHead(p) }

func (v *vp8Payloads) sample(payloads [][]byte, _ bool) (data []byte, key bool, config *frame.Config, err error) {
	if data, err = gather(&codecs.VP8Packet{}, payloads); err != nil {
		return nil, false, nil, err
	}
	if len(data) == 0 {
		return nil, false, nil, errNoFrame
	}
	if key = vp8.IsKey(data); !key {
		return data, false, nil, nil
	}
	c, err := vp8.TrackConfig(data)
	if err != nil {
		return nil, false, nil, fmt.Errorf("%w: %w", errPayload, err)
	}
	return data, true, renewed(&v.last, c), nil
}

// renewed is c when it is not the last one, which it then is.
func renewed(last *frame.Config, c frame.Config) *frame.Config {
	if c.Width == last.Width && c.Height == last.Height && bytes.Equal(c.Header, last.Header) {
		return nil
	}
	*last = c
	return &c
}

// opusPayloads reads RFC 7587: a payload is a packet, always announced as stereo; a mono packet decodes to two equal
// channels.
type opusPayloads struct{ announced bool }

func (*opusPayloads) head([]byte) bool { return true }

func (o *opusPayloads) sample(payloads [][]byte, _ bool) (data []byte, key bool, config *frame.Config, err error) {
	data = payloads[0]
	if len(payloads) != 1 || opus.Samples(data) == 0 {
		return nil, false, nil, fmt.Errorf("%w: not one Opus packet", errPayload)
	}
	if !o.announced {
		header, herr := opus.Header(2)
		if herr != nil {
			return nil, false, nil, fmt.Errorf("make Opus header: %w", herr)
		}
		c, cerr := opus.TrackConfig(header)
		if cerr != nil {
			return nil, false, nil, fmt.Errorf("make Opus configuration: %w", cerr)
		}
		o.announced, config = true, &c
	}
	return data, true, config, nil
}
