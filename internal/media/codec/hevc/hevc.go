// Package hevc reads what the rest of the media plane needs to know about an HEVC stream: parameter sets, their record
// in ISO BMFF, key frames. Bytes in, values out: it must never know files, sockets, time of day or a logger, and it
// starts no goroutines. All access units are length-prefixed with 4 bytes (ISO 14496-15 section 8.3); nothing here
// keeps or changes the bytes it is given.
package hevc

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
)

// NAL unit types, ITU-T H.265 table 7-1.
const (
	TypeBLAWLP    = 16 // the first of the intra random access points
	TypeIDRWRADL  = 19
	TypeIDRNLP    = 20
	TypeCRA       = 21
	TypeVPS       = 32
	TypeSPS       = 33
	TypePPS       = 34
	TypeAUD       = 35
	TypeFiller    = 38
	TypeSEI       = 39 // in front of the slices; TypeSuffixSEI is behind them
	TypeSuffixSEI = 40

	lastSlice = 31
)

// ErrMalformed is wrapped by every error of this package: the bytes are not HEVC as the standard has it.
var ErrMalformed = errors.New("malformed HEVC")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Type returns the type of a NAL unit, -1 for one that is too short for its header.
func Type(unit []byte) int {
	if len(unit) < 2 {
		return -1
	}
	return int(unit[0] >> 1 & 0x3f)
}

// TrackConfig makes the track configuration of a stream with these parameter sets; it fails when the SPS can't be read.
// The three are the ones that the first picture uses, more are all others.
func TrackConfig(vps, sps, pps []byte, more ...[]byte) (frame.Config, error) {
	info, err := Info(sps)
	if err != nil {
		return frame.Config{}, err
	}
	if Type(vps) != TypeVPS || Type(pps) != TypePPS {
		return frame.Config{}, malformed("no VPS or no PPS")
	}
	for _, set := range more {
		if !IsSet(set) {
			return frame.Config{}, malformed("NAL unit of type %d is no parameter set", Type(set))
		}
	}
	return frame.Config{
		Kind: frame.Video, Codec: frame.HEVC, VPS: vps, SPS: sps, PPS: pps, Sets: more,
		Width: info.Width, Height: info.Height, FrameRate: info.FrameRate,
	}, nil
}

// CodecString returns the name of ISO 14496-15 annex E, as "hvc1.1.6.L93.B0"; "" when sps can't be read.
func CodecString(sps []byte) string {
	info, err := Info(sps)
	if err != nil {
		return ""
	}
	ptl := info.ProfileTierLevel
	var b strings.Builder
	b.WriteString("hvc1.")
	if space := ptl[0] >> 6; space > 0 {
		b.WriteByte('A' + space - 1)
	}
	compatible := uint32(ptl[1])<<24 | uint32(ptl[2])<<16 | uint32(ptl[3])<<8 | uint32(ptl[4])
	tier := "L"
	if ptl[0]&0x20 != 0 {
		tier = "H"
	}
	fmt.Fprintf(&b, "%d.%X.%s%d", ptl[0]&0x1f, bits.Reverse32(compatible), tier, ptl[11])
	constraints := bytes.TrimRight(ptl[5:11], "\x00")
	for _, c := range constraints {
		fmt.Fprintf(&b, ".%X", c)
	}
	return b.String()
}

// IsKey reports whether an access unit is an intra random access point: IDR, CRA or BLA. Decoding can begin there;
// leading pictures that refer to what was before a CRA are not shown then.
func IsKey(au []byte) bool {
	t := slice(au)
	return t >= TypeBLAWLP && t <= TypeCRA
}

// IsCRA reports whether an access unit is a clean random access picture: leading pictures, which are decoded behind it
// and shown before it, may refer to what is in front of it (open groups of pictures).
func IsCRA(au []byte) bool { return slice(au) == TypeCRA }

// slice is the type of an access unit's first slice; -1: it has none.
func slice(au []byte) int {
	for {
		unit, rest, ok := nal.Next(au, 4)
		if !ok {
			return -1
		}
		if t := Type(unit); t >= 0 && t <= lastSlice {
			return t
		}
		au = rest
	}
}

// Sublayer returns the temporal sub-layer of an access unit's picture, whose lengths have lengthSize bytes, and whether
// no other picture of that sub-layer or a lower one refers to it: a sub-layer non-reference picture, ITU-T H.265
// section 7.4.2.2. -1: it is not known, or there are layers of another kind, which refer to it in a way of their own.
func Sublayer(au []byte, lengthSize int) (layer int, unreferred bool) {
	layer, unreferred = -1, true
	whole := nal.Every(au, lengthSize, func(unit []byte) bool {
		t := Type(unit)
		if t < 0 || t > lastSlice {
			return t > lastSlice
		}
		of := int(unit[1]&7) - 1 // nuh_temporal_id_plus1
		if unit[0]&1 != 0 || unit[1]>>3 != 0 || of < 0 || layer >= 0 && layer != of {
			return false
		}
		layer, unreferred = of, unreferred && t <= lastUnreferred && t%2 == 0
		return true
	})
	if !whole || layer < 0 {
		return -1, false
	}
	return layer, unreferred
}

// lastUnreferred is the last type of sub-layer non-reference pictures, all of which are even, table 7-1.
const lastUnreferred = 14

// IsSet reports whether a NAL unit is a parameter set.
func IsSet(unit []byte) bool { t := Type(unit); return t >= TypeVPS && t <= TypePPS }

// ParseHVCC reads an HEVCDecoderConfigurationRecord, ISO 14496-15 section 8.3.3.1. The sets share hvcC's memory; there
// may be none of any (hev1). lengthSize is the number of bytes, 1, 2 or 4, before each NAL unit of a sample.
func ParseHVCC(hvcC []byte) (vps, sps, pps [][]byte, lengthSize int, err error) {
	if len(hvcC) < 23 {
		return nil, nil, nil, 0, malformed("hvcC has %d bytes, at least 23 are needed", len(hvcC))
	}
	if hvcC[0] != 1 && hvcC[0] != 0 { // early writers left 0
		return nil, nil, nil, 0, malformed("hvcC version %d", hvcC[0])
	}
	lengthSize = int(hvcC[21]&3) + 1
	if lengthSize == 3 {
		return nil, nil, nil, 0, malformed("NAL length size 3")
	}
	rest := hvcC[23:]
	for range hvcC[22] {
		if len(rest) < 3 {
			return nil, nil, nil, 0, malformed("hvcC ends inside its arrays")
		}
		count := int(rest[1])<<8 | int(rest[2])
		rest = rest[3:]
		for range count {
			if len(rest) < 2 {
				return nil, nil, nil, 0, malformed("hvcC ends inside its parameter sets")
			}
			n := int(rest[0])<<8 | int(rest[1])
			if n > len(rest)-2 {
				return nil, nil, nil, 0, malformed("hvcC has a parameter set of %d bytes, %d are left", n, len(rest)-2)
			}
			set := rest[2 : 2+n : 2+n]
			rest = rest[2+n:]
			switch Type(set) {
			case TypeVPS:
				vps = append(vps, set)
			case TypeSPS:
				sps = append(sps, set)
			case TypePPS:
				pps = append(pps, set)
			}
		}
	}
	return vps, sps, pps, lengthSize, nil
}

// AppendHVCC appends the HEVCDecoderConfigurationRecord of these parameter sets with 4-byte lengths. sps must have
// passed Info; vps, it and pps come first among their kind.
func AppendHVCC(b, vps, sps, pps []byte, more ...[]byte) ([]byte, error) {
	info, err := Info(sps)
	if err != nil {
		return b, err
	}
	b = append(b, 1)
	b = append(b, info.ProfileTierLevel[:]...)
	b = append(b, 0xf0, 0, 0xfc) // no segmentation restriction, parallelism unknown
	b = append(b, 0xfc|byte(info.ChromaFormat), 0xf8|byte(info.BitDepth-8), 0xf8|byte(info.BitDepthChroma-8))
	b = append(b, 0, 0) // average frame rate: not said
	nested := byte(0)
	if info.temporalNesting {
		nested = 4
	}
	b = append(b, byte(info.temporalLayers)<<3|nested|3, 3)
	for n, first := range [...][]byte{vps, sps, pps} {
		typ := TypeVPS + n
		sets := [][]byte{first}
		for _, s := range more {
			if Type(s) == typ {
				sets = append(sets, s)
			}
		}
		b = append(b, 0x80|byte(typ), byte(len(sets)>>8), byte(len(sets))) // complete
		for _, s := range sets {
			if len(s) > 0xffff || Type(s) != typ {
				return b, malformed("parameter set of %d bytes and type %d", len(s), Type(s))
			}
			b = append(append(b, byte(len(s)>>8), byte(len(s))), s...)
		}
	}
	return b, nil
}
