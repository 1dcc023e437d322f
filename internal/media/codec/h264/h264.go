// Package h264 reads what the rest of the media plane needs to know about an H.264 stream: parameter sets, access
// units, key frames. Bytes in, values out: it must never know files, sockets, time of day or a logger, and it starts no
// goroutines. All access units are length-prefixed (AVCC, ISO 14496-15 section 5.3); nothing here keeps or changes the
// bytes it is given.
package h264

import (
	"errors"
	"fmt"

	"millrace/internal/media/codec/bits"
	"millrace/internal/media/frame"
)

// NAL unit types, ITU-T H.264 table 7-1.
const (
	TypeNonIDR     = 1
	TypePartitionA = 2
	TypeIDR        = 5
	TypeSEI        = 6
	TypeSPS        = 7
	TypePPS        = 8
	TypeAUD        = 9
	TypeFiller     = 12
)

// ErrMalformed is wrapped by every error of this package: the bytes are not H.264 as the standard has it.
var ErrMalformed = errors.New("malformed H.264")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Type returns the type of a NAL unit, 0 for an empty one.
func Type(nal []byte) int {
	if len(nal) == 0 {
		return 0
	}
	return int(nal[0] & 0x1f)
}

// ParseAVCC reads an AVCDecoderConfigurationRecord, ISO 14496-15 section 5.3.3.1. The sets share avcC's memory; there
// may be none of either (avc3). lengthSize is the number of bytes, 1, 2 or 4, before each NAL unit of a sample.
func ParseAVCC(avcC []byte) (sps, pps [][]byte, lengthSize int, err error) {
	if len(avcC) < 7 {
		return nil, nil, 0, malformed("avcC has %d bytes, at least 7 are needed", len(avcC))
	}
	if avcC[0] != 1 {
		return nil, nil, 0, malformed("avcC version %d", avcC[0])
	}
	lengthSize = int(avcC[4]&3) + 1
	if lengthSize == 3 {
		return nil, nil, 0, malformed("NAL length size 3")
	}
	sps, rest, err := parameterSets(avcC[6:], int(avcC[5]&0x1f), TypeSPS)
	if err != nil {
		return nil, nil, 0, err
	}
	if len(rest) == 0 {
		return nil, nil, 0, malformed("avcC ends before its PPS count")
	}
	pps, _, err = parameterSets(rest[1:], int(rest[0]), TypePPS)
	if err != nil {
		return nil, nil, 0, err
	}
	return sps, pps, lengthSize, nil
}

func parameterSets(b []byte, count, typ int) (sets [][]byte, rest []byte, err error) {
	for range count {
		if len(b) < 2 {
			return nil, nil, malformed("avcC ends inside its parameter sets")
		}
		n := int(b[0])<<8 | int(b[1])
		if n == 0 || n > len(b)-2 {
			return nil, nil, malformed("avcC has a parameter set of %d bytes, %d are left", n, len(b)-2)
		}
		if set := b[2 : 2+n : 2+n]; Type(set) == typ {
			sets = append(sets, set)
		}
		b = b[2+n:]
	}
	return sets, b, nil
}

// AppendAVCC appends the AVCDecoderConfigurationRecord of these parameter sets with 4-byte lengths. sps must have
// passed Info; it and pps come first among their kind.
func AppendAVCC(b, sps, pps []byte, more ...[]byte) ([]byte, error) {
	info, err := Info(sps)
	if err != nil {
		return b, err
	}
	b = append(b, 1, sps[1], sps[2], sps[3], 0xff)
	for _, kind := range [...]struct {
		typ, most int
		first     []byte
		flags     byte
	}{{TypeSPS, 31, sps, 0xe0}, {TypePPS, 255, pps, 0}} {
		at := len(b)
		b = append(b, kind.flags)
		for i := -1; i < len(more); i++ {
			set := kind.first
			if i >= 0 {
				set = more[i]
			}
			switch t := Type(set); {
			case i >= 0 && t != kind.typ:
				continue
			case t != kind.typ, len(set) > 0xffff, int(b[at]&^kind.flags) == kind.most:
				return b, malformed("parameter set of type %d with %d bytes", t, len(set))
			}
			b[at]++
			b = append(append(b, byte(len(set)>>8), byte(len(set))), set...)
		}
	}
	switch info.ProfileIDC {
	case 66, 77, 88:
	default: // ISO 14496-15 asks for these four bytes with the High profiles
		b = append(b, 0xfc|byte(info.ChromaFormat), 0xf8|byte(info.BitDepth-8), 0xf8|byte(info.BitDepthChroma-8), 0)
	}
	return b, nil
}

// CodecString returns the RFC 6381 name, as "avc1.64001f"; "" when sps is too short to have one.
func CodecString(sps []byte) string {
	if len(sps) < 4 || Type(sps) != TypeSPS {
		return ""
	}
	return fmt.Sprintf("avc1.%02x%02x%02x", sps[1], sps[2], sps[3])
}

// TrackConfig makes the track configuration of a stream with these parameter sets; it fails when the SPS can't be read.
// sps and pps are the ones that the first picture uses, more are all others.
func TrackConfig(sps, pps []byte, more ...[]byte) (frame.Config, error) {
	info, err := Info(sps)
	if err != nil {
		return frame.Config{}, err
	}
	if Type(pps) != TypePPS {
		return frame.Config{}, malformed("no PPS")
	}
	for _, set := range more {
		if t := Type(set); t != TypeSPS && t != TypePPS {
			return frame.Config{}, malformed("NAL unit of type %d is no parameter set", t)
		}
	}
	return frame.Config{
		Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: pps, Sets: more,
		Width: info.Width, Height: info.Height, FrameRate: info.FrameRate,
	}, nil
}

// SetID is the ID of a parameter set, SPS or PPS; -1 for anything else.
func SetID(set []byte) int {
	head := 1
	switch Type(set) {
	case TypeSPS:
		head = 4 // profile, constraints, level
	case TypePPS:
	default:
		return -1
	}
	if len(set) <= head {
		return -1
	}
	r := bits.NewReader(set[head:])
	id := r.Golomb()
	if r.Short() {
		return -1
	}
	return id
}
