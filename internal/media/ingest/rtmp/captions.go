package rtmp

import (
	"bytes"
	"encoding/base64"
	"time"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
	"millrace/internal/media/rtmpwire"
)

const (
	captionInfo = "onCaptionInfo"
	maxCaption  = 1 << 10 // bytes of a message: cc_data of a picture takes a hundred
	// messages that wait for their picture: as many pictures as any codec puts into another order.
	maxCaptions   = 32
	captionPrefix = "\xb5\x00\x31GA94\x03"
)

// captions keeps the closed captions that some encoders send beside the picture: onCaptionInfo, by itself or in
// @setDataFrame, of the type 708, whose data are a message of ITU-T T.35 in base64, with or without what says that it
// is one. They come in the order in which pictures are shown, which is not that in which pictures come. So they are put
// into the next picture that is shown behind those that have some: read in the order of showing, as captions are, they
// are in their order again.
type captions struct {
	waiting [][]byte
	shown   time.Duration // when the last picture that has some is shown
	some    bool
}

// handle reports whether a data message has captions.
func (c *captions) handle(p rtmpwire.Packet) bool {
	if !bytes.Contains(p.Body[:min(len(p.Body), 64)], []byte(captionInfo)) {
		return false
	}
	for _, v := range p.Values() {
		o, ok := v.(rtmpwire.Object)
		if !ok || o.Text("type") != "708" || len(c.waiting) >= maxCaptions {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(o.Text("data"))
		if err == nil && len(data) > 0 && len(data) <= maxCaption {
			c.waiting = append(c.waiting, a53Message(data))
		}
	}
	return true
}

// a53Message is data with all that stands before cc_data in a message of ATSC A/53.
func a53Message(data []byte) []byte {
	for missing := range len(captionPrefix) { // what is left out is left out in front
		if bytes.HasPrefix(data, []byte(captionPrefix[missing:])) {
			return append([]byte(captionPrefix[:missing]), data...)
		}
	}
	return append([]byte(captionPrefix), data...)
}

// put adds the captions that wait to a picture with lengths of 4 bytes, as SEI in front of it.
func (c *captions) put(codec frame.Codec, au []byte, pts time.Duration, key bool) []byte {
	if len(c.waiting) == 0 || c.some && !key && pts <= c.shown { // a clock that jumps back goes on with a key frame
		return au
	}
	c.shown, c.some = pts, true
	header, delimiter := []byte{h264.TypeSEI}, func(unit []byte) bool { return len(unit) > 0 && unit[0]&0x1f == 9 }
	switch codec { //nolint:exhaustive // the others have no SEI
	case frame.H264:
	case frame.HEVC:
		header, delimiter = []byte{hevc.TypeSEI << 1, 1},
			func(unit []byte) bool { return len(unit) > 0 && unit[0]>>1&0x3f == 35 }
	default:
		c.waiting = nil
		return au
	}
	var out []byte
	rest := au
	if unit, behind, ok := nal.Next(au, 4); ok && delimiter(unit) {
		out, rest = append(out, au[:len(au)-len(behind)]...), behind
	}
	for _, m := range c.waiting {
		sei := append([]byte{4}, bytes.Repeat([]byte{0xff}, len(m)/255)...)
		sei = append(append(append(sei, byte(len(m)%255)), m...), 0x80)
		out = nal.Append(out, append(bytes.Clone(header), nal.Escape(sei)...))
	}
	c.waiting = nil
	return append(out, rest...)
}
