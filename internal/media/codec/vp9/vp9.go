// Package vp9 reads what the rest of the media plane needs to know about a VP9 stream: its key frames and its record in
// ISO BMFF. Bytes in, values out: it must never know files, sockets, time of day or a logger, and it starts no
// goroutines. A sample is one frame or superframe (VP codecs in ISO BMFF section 4).
package vp9

import (
	"errors"
	"fmt"

	library "github.com/bluenviron/mediacommon/v2/pkg/codecs/vp9"

	"millrace/internal/media/frame"
)

// ErrMalformed is wrapped by every error of this package: the bytes are not VP9 as the standard has it.
var ErrMalformed = errors.New("malformed VP9")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// IsKey reports whether a frame, or the first one of a superframe, is a key frame.
func IsKey(data []byte) bool {
	if len(data) == 0 || data[0]>>6 != 2 {
		return false
	}
	bits := data[0] << 4 // show_existing_frame, frame_type; profile 3 has a reserved bit before
	if data[0]&0x30 == 0x30 {
		bits <<= 1
	}
	return bits&0xc0 == 0
}

// Record fields, VP codecs in ISO BMFF: VPCodecConfigurationRecord without version and flags.
const (
	recordSize  = 8
	unspecified = 2
)

// ParseConfig reads a vpcC box's body, with version and flags or without as some encoders send it, and returns the
// record.
func ParseConfig(vpcC []byte) ([]byte, error) {
	// a record has a level here, never 0
	if len(vpcC) >= 4+recordSize && vpcC[0] == 1 && vpcC[1] == 0 && vpcC[2] == 0 && vpcC[3] == 0 {
		vpcC = vpcC[4:]
	}
	if len(vpcC) < recordSize {
		return nil, malformed("vpcC of %d bytes", len(vpcC))
	}
	record := vpcC[:recordSize:recordSize]
	if depth := record[2] >> 4; record[0] > 3 || depth != 8 && depth != 10 && depth != 12 {
		return nil, malformed("vpcC: profile %d, bit depth %d", record[0], depth)
	}
	return record, nil
}

// TrackConfig makes the track configuration of a stream from a key frame, which alone says its size. record is what its
// container said, nil when that said nothing: then it is made of the key frame, too.
func TrackConfig(record, key []byte) (frame.Config, error) {
	var h library.Header
	if err := h.Unmarshal(key); err != nil {
		return frame.Config{}, fmt.Errorf("%w: read frame header: %w", ErrMalformed, err)
	}
	if h.FrameSize == nil || h.ColorConfig == nil {
		return frame.Config{}, malformed("not a key frame")
	}
	if record == nil {
		full := byte(0)
		if h.ColorConfig.ColorRange {
			full = 1
		}
		primaries, transfer, matrix := colours(h.ColorConfig.ColorSpace)
		record = []byte{
			h.Profile, level(h.Width(), h.Height()), h.ColorConfig.BitDepth<<4 | h.ChromaSubsampling()<<1 | full,
			primaries, transfer, matrix, 0, 0,
		}
	}
	if _, err := ParseConfig(record); err != nil {
		return frame.Config{}, err
	}
	return frame.Config{Kind: frame.Video, Codec: frame.VP9, Header: record, Width: h.Width(), Height: h.Height()}, nil
}

// colours turns color_space, VP9 section 7.2.2, into ITU-T H.273 numbers.
func colours(space uint8) (primaries, transfer, matrix byte) {
	switch space {
	case 1, 3: // BT.601, SMPTE 170M
		return 6, 6, 6
	case 2:
		return 1, 1, 1
	case 4: // SMPTE 240M
		return 7, 7, 7
	case 5:
		return 9, 14, 9
	case 7: // RGB
		return 1, 13, 0
	}
	return unspecified, unspecified, unspecified
}

// level is the lowest level whose pictures may be this large, VP9 annex A; the frame rate is not known here.
func level(width, height int) byte {
	size := width * height
	for _, l := range [...]struct {
		level   byte
		picture int
	}{
		{10, 36864},
		{11, 73728},
		{20, 122880},
		{21, 245760},
		{30, 552960},
		{31, 983040},
		{40, 2228224},
		{50, 8912896},
		{60, 35651584},
	} {
		if size <= l.picture {
			return l.level
		}
	}
	return 62
}

// Transfer returns the transfer characteristics of a record, an ITU-T H.273 number; 2, "unspecified", when it can't be
// read.
func Transfer(record []byte) uint8 {
	r, err := ParseConfig(record)
	if err != nil {
		return unspecified
	}
	return r[4]
}

// CodecString returns the name of VP codecs in ISO BMFF section 3.4, as "vp09.00.31.08"; "" when the record can't be
// read. The optional fields follow only where they are not the defaults.
func CodecString(record []byte) string {
	r, err := ParseConfig(record)
	if err != nil {
		return ""
	}
	depth, chroma, full := r[2]>>4, r[2]>>1&7, r[2]&1
	s := fmt.Sprintf("vp09.%02d.%02d.%02d", r[0], r[1], depth)
	plain := r[3] == r[4] && r[4] == r[5] && (r[3] == 1 || r[3] == unspecified)
	if chroma <= 1 && full == 0 && plain {
		return s
	}
	return s + fmt.Sprintf(".%02d.%02d.%02d.%02d.%02d", chroma, r[3], r[4], r[5], full)
}
