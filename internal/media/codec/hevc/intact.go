package hevc

import (
	"millrace/internal/media/codec/bits"
	"millrace/internal/media/codec/nal"
)

// Intact reports whether a decoder makes a picture of an access unit whose lengths have lengthSize bytes: they add up,
// and there is a slice segment whose header begins as ITU-T H.265 section 7.3.6.1 has it. It does not look any further:
// of what is wrong there decoders make a picture with a fault in it.
func Intact(au []byte, lengthSize int) bool {
	picture := false
	return nal.Every(au, lengthSize, func(unit []byte) bool {
		picture = picture || begins(unit)
		return true
	}) && picture
}

// NoPicture reports whether an access unit whose lengths have lengthSize bytes is none by itself: parameter sets, SEI,
// filler data and the like, types 32 to 40 of table 7-1, which some encoders send apart from their pictures.
func NoPicture(au []byte, lengthSize int) bool {
	return nal.Every(au, lengthSize, func(unit []byte) bool {
		t := Type(unit)
		return len(unit) == 0 || unit[0]&0x80 == 0 && t >= TypeVPS && t <= TypeSuffixSEI
	})
}

// begins reports whether a unit is a slice segment whose header begins as it should.
func begins(unit []byte) bool {
	const header, slicesBegin, maxPPS = 2, 16, 64
	if t := Type(unit); len(unit) <= header || t < 0 || t > lastSlice || unit[0]&0x80 != 0 || unit[1]&7 == 0 {
		return false
	}
	r := bits.NewReader(nal.Unescape(unit[header:min(len(unit), slicesBegin)]))
	r.Flag() // first_slice_segment_in_pic_flag
	if t := Type(unit); t >= TypeBLAWLP && t <= lastRandomAccess {
		r.Flag() // no_output_of_prior_pics_flag
	}
	pps := r.Golomb()
	return !r.Short() && pps < maxPPS
}

// lastRandomAccess is the last type of pictures that need no other, table 7-1.
const lastRandomAccess = 23
