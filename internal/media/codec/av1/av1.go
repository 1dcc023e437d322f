// Package av1 reads what the rest of the media plane needs to know about an AV1 stream: OBUs, sequence headers, key
// frames. Bytes in, values out: it must never know files, sockets, time of day or a logger, and it starts no
// goroutines. A temporal unit is one sample of ISO BMFF: OBUs with size fields, without temporal delimiters (AV1 in ISO
// BMFF section 2.4).
package av1

import (
	"errors"
	"fmt"
	"iter"

	"millrace/internal/media/frame"
)

// OBU types, AV1 section 6.2.2.
const (
	TypeSequenceHeader    = 1
	TypeTemporalDelimiter = 2
	TypeFrameHeader       = 3
	TypeTileGroup         = 4
	TypeMetadata          = 5
	TypeFrame             = 6
	TypeRedundantHeader   = 7
	TypeTileList          = 8
	TypePadding           = 15
)

// ErrMalformed is wrapped by every error of this package: the bytes are not AV1 as the standard has it.
var ErrMalformed = errors.New("malformed AV1")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// maxOBUs bounds what one temporal unit may have; 512 tile groups is the most of a level.
const maxOBUs = 4096

// obu is one OBU: whole as it stands, payload without header and size.
type obu struct {
	kind           int
	whole, payload []byte
	sized          bool
}

// next cuts the first OBU off b. One without a size field reaches to the end.
func next(b []byte) (o obu, rest []byte, ok bool) {
	if len(b) == 0 || b[0]&0x80 != 0 {
		return obu{}, nil, false
	}
	head := 1
	if b[0]&4 != 0 { // extension
		head = 2
	}
	if len(b) < head {
		return obu{}, nil, false
	}
	o.kind, o.sized = int(b[0]>>3&15), b[0]&2 != 0
	if !o.sized {
		o.whole, o.payload = b, b[head:]
		return o, nil, true
	}
	size, n := leb128(b[head:])
	if n == 0 || size > uint64(len(b)-head-n) {
		return obu{}, nil, false
	}
	end := head + n + int(size)
	o.whole, o.payload = b[:end:end], b[head+n:end:end]
	return o, b[end:], true
}

// leb128 reads a number of section 4.10.5; n is how many bytes it has, 0 when it is malformed.
func leb128(b []byte) (v uint64, n int) {
	for i := range min(8, len(b)) {
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i]&0x80 == 0 {
			if v > 1<<32-1 {
				return 0, 0
			}
			return v, i + 1
		}
	}
	return 0, 0
}

func appendLEB128(b []byte, v int) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

// T35 iterates over the messages of ITU-T T.35 in a temporal unit, metadata_itut_t35 of section 5.8.2, from their
// country code on.
func T35(tu []byte) iter.Seq[[]byte] {
	const metadataT35 = 4
	return func(yield func([]byte) bool) {
		for range maxOBUs {
			o, rest, ok := next(tu)
			if !ok {
				return
			}
			tu = rest
			if o.kind != TypeMetadata {
				continue
			}
			if kind, size := leb128(o.payload); size > 0 && kind == metadataT35 && !yield(o.payload[size:]) {
				return
			}
		}
	}
}

// kept reports whether an OBU belongs into a sample.
func kept(kind int) bool {
	return kind != TypeTemporalDelimiter && kind != TypePadding && kind != TypeTileList && kind != TypeRedundantHeader
}

// Sample turns a temporal unit as encoders send it into the form of a sample. It copies only when something has to go
// or a size field is missing. A unit that can't be taken apart, or has nothing to show, is ErrMalformed.
func Sample(tu []byte) ([]byte, error) {
	same, found, n := true, false, 0
	for rest := tu; len(rest) > 0; n++ {
		o, after, ok := next(rest)
		if !ok || n >= maxOBUs {
			return nil, malformed("temporal unit of %d bytes, at byte %d", len(tu), len(tu)-len(rest))
		}
		same = same && o.sized && kept(o.kind)
		found = found || o.kind == TypeFrame || o.kind == TypeFrameHeader
		rest = after
	}
	if !found {
		return nil, malformed("a temporal unit without a frame")
	}
	if same {
		return tu, nil
	}
	out := make([]byte, 0, len(tu)+4)
	for rest := tu; len(rest) > 0; {
		o, after, _ := next(rest)
		out = o.append(out)
		rest = after
	}
	return out, nil
}

// append appends the OBU with a size field, unless it doesn't belong into a sample.
func (o obu) append(b []byte) []byte {
	if !kept(o.kind) {
		return b
	}
	if o.sized {
		return append(b, o.whole...)
	}
	head := len(o.whole) - len(o.payload)
	b = append(b, o.whole[:head]...)
	b[len(b)-head] |= 2
	return append(appendLEB128(b, len(o.payload)), o.payload...)
}

// SequenceHeader returns the sequence header OBU, with its size field, of a sample; nil when it has none.
func SequenceHeader(tu []byte) []byte {
	for {
		o, rest, ok := next(tu)
		if !ok {
			return nil
		}
		if o.kind == TypeSequenceHeader && o.sized {
			return o.whole
		}
		tu = rest
	}
}

// IsKey reports whether a sample is a sync sample, AV1 in ISO BMFF section 2.4: a sequence header, and a shown key
// frame first.
func IsKey(tu []byte) bool {
	header := false
	for {
		o, rest, ok := next(tu)
		if !ok {
			return false
		}
		switch o.kind {
		case TypeSequenceHeader:
			if len(o.payload) > 0 && o.payload[0]&0x08 != 0 { // reduced_still_picture_header: every frame is one
				return true
			}
			header = true
		case TypeFrame, TypeFrameHeader: // show_existing_frame, frame_type, show_frame: section 5.9.2
			return header && len(o.payload) > 0 && o.payload[0]&0xf0 == 0x10
		}
		tu = rest
	}
}

// TrackConfig makes the track configuration of a stream with this sequence header, an OBU with its size field.
func TrackConfig(header []byte) (frame.Config, error) {
	h, err := Info(header)
	if err != nil {
		return frame.Config{}, err
	}
	return frame.Config{
		Kind: frame.Video, Codec: frame.AV1, Header: header,
		Width: h.Width, Height: h.Height, FrameRate: h.FrameRate,
	}, nil
}

// ParseConfig reads an AV1CodecConfigurationRecord (av1C) and returns its sequence header OBU; nil when it has none,
// which then stands in the first sample only.
func ParseConfig(av1C []byte) ([]byte, error) {
	if len(av1C) < 4 || av1C[0] != 0x81 {
		return nil, malformed("av1C of %d bytes", len(av1C))
	}
	for rest := av1C[4:]; len(rest) > 0; {
		o, after, ok := next(rest)
		if !ok {
			return nil, malformed("the OBUs of av1C")
		}
		if o.kind == TypeSequenceHeader {
			return o.append(nil), nil
		}
		rest = after
	}
	return nil, nil
}

// AppendConfig appends the AV1CodecConfigurationRecord of a sequence header, AV1 in ISO BMFF section 2.3.3.
func AppendConfig(b, header []byte) ([]byte, error) {
	h, err := Info(header)
	if err != nil {
		return b, err
	}
	bit := func(on bool, at int) byte {
		if on {
			return 1 << at
		}
		return 0
	}
	b = append(b, 0x81, h.Profile<<5|h.Level,
		bit(h.HighTier, 7)|bit(h.BitDepth > 8, 6)|bit(h.BitDepth == 12, 5)|bit(h.Monochrome, 4)|bit(h.SubsamplingX,
			3)|bit(h.SubsamplingY, 2)|h.ChromaPosition, 0)
	return append(b, header...), nil
}

// CodecString returns the name of AV1 in ISO BMFF section 5, as "av01.0.04M.08"; "" when the header can't be read. The
// optional fields follow only where they are not the defaults.
func CodecString(header []byte) string {
	h, err := Info(header)
	if err != nil {
		return ""
	}
	tier := "M"
	if h.HighTier {
		tier = "H"
	}
	s := fmt.Sprintf("av01.%d.%02d%s.%02d", h.Profile, h.Level, tier, h.BitDepth)
	digit := func(on bool) int {
		if on {
			return 1
		}
		return 0
	}
	position := 0
	if h.SubsamplingX && h.SubsamplingY {
		position = int(h.ChromaPosition)
	}
	long := fmt.Sprintf(".%d.%d%d%d.%02d.%02d.%02d.%d", digit(h.Monochrome), digit(h.SubsamplingX),
		digit(h.SubsamplingY), position,
		h.Colour.Primaries, h.Colour.Transfer, h.Colour.Matrix, digit(h.Colour.FullRange))
	if long == ".0.110.01.01.01.0" || long == ".0.110.02.02.02.0" { // the defaults, and "not said"
		return s
	}
	return s + long
}
