package codec

import (
	"time"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/frame"
)

// A Verdict is what becomes of an access unit.
type Verdict int

// What becomes of them.
const (
	Kept      Verdict = iota // it is written
	NoPicture                // parameter sets or SEI by themselves: they are left out, and nothing is missing
	Damaged                  // decoders refuse it, or one that it may refer to: it is left out
)

// Filter leaves out of a track what decoders refuse, as far as its structure shows it, and with a picture all that come
// behind it up to one that needs no other: players end the playback for good at an access unit that their decoder
// refuses, and may at pictures whose references are not there. It looks at H.264 and HEVC; all else passes. One
// goroutine uses it.
type Filter struct {
	intact  func(data []byte) bool // nil: all is
	without func(data []byte) bool // without a picture; asked of what isn't intact
	waiting bool
	since   time.Duration // DTS of the picture that was refused
}

// longestWait is how long pictures are left out when none comes that needs no other: an encoder that refreshes its
// picture by and by never sends one, and the picture heals by itself.
const longestWait = 5 * time.Second

// NewFilter returns the Filter of a track whose NAL units have lengths of lengthSize bytes, 1 to 4.
func NewFilter(c frame.Config, lengthSize int) *Filter {
	f := &Filter{}
	switch c.Codec { //nolint:exhaustive // the others have no such structure
	case frame.H264:
		sets := append([][]byte{c.SPS, c.PPS}, c.Sets...)
		f.intact = h264.NewInspector(lengthSize, sets...).Intact
		f.without = func(au []byte) bool { return h264.NoPicture(au, lengthSize) }
	case frame.HEVC:
		f.intact = func(au []byte) bool { return hevc.Intact(au, lengthSize) }
		f.without = func(au []byte) bool { return hevc.NoPicture(au, lengthSize) }
	}
	return f
}

// Judge says what becomes of an access unit to be decoded at dts. key: it needs no other.
func (f *Filter) Judge(data []byte, key bool, dts time.Duration) Verdict {
	switch {
	case f.intact == nil:
		return Kept
	case f.intact(data):
		f.waiting = f.waiting && !key && dts >= f.since && dts-f.since < longestWait
	case f.without(data):
		return NoPicture
	case !f.waiting || dts < f.since || dts-f.since >= longestWait:
		f.waiting, f.since = true, dts
	}
	if f.waiting {
		return Damaged
	}
	return Kept
}
