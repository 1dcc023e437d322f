package h264

import (
	"bytes"
	"errors"
	"slices"

	"millrace/internal/media/codec/bits"
	"millrace/internal/media/codec/nal"
)

// Inspector tells access units of which no decoder makes a picture: their lengths don't add up, or none of their slices
// has a header that can be read, ITU-T H.264 section 7.3.3. It does not look into the macroblocks: of what is wrong
// there decoders make a picture with a fault in it. One goroutine uses it.
type Inspector struct {
	lengthSize int
	sets       [][]byte
	pps        []int   // IDs of those that have come
	slices     *Slices // nil where headers are read no further than to the ID of their PPS
}

// NewInspector returns an Inspector of a stream whose units have lengths of lengthSize bytes, 1 to 4, with the
// parameter sets that its container has, in any order.
func NewInspector(lengthSize int, sets ...[]byte) *Inspector {
	i := &Inspector{lengthSize: lengthSize, sets: sets}
	var sps, pps [][]byte
	for _, s := range sets {
		switch Type(s) {
		case TypeSPS:
			sps = append(sps, s)
		case TypePPS:
			pps = append(pps, s)
			i.learn(s)
		}
	}
	if len(sps) == 1 && len(pps) == 1 {
		if x, err := NewSlices(sps[0], pps[0]); err == nil {
			i.slices = x
		}
	}
	return i
}

// Intact reports whether a decoder makes a picture of an access unit.
func (i *Inspector) Intact(au []byte) bool {
	picture := false
	return nal.Every(au, i.lengthSize, func(unit []byte) bool {
		picture = i.Readable(unit) || picture
		return true
	}) && picture
}

// NoPicture reports whether an access unit whose lengths have lengthSize bytes is none by itself: parameter sets, SEI,
// filler data and the like, types 6 to 15 of table 7-1, which some encoders send apart from their pictures.
func NoPicture(au []byte, lengthSize int) bool {
	return nal.Every(au, lengthSize, func(unit []byte) bool {
		t := Type(unit)
		return len(unit) == 0 || unit[0]&0x80 == 0 && t >= TypeSEI && t <= lastCompanion
	})
}

// lastCompanion is the last type of units without slices: a subset SPS.
const lastCompanion = 15

// Readable takes note of a unit, of which there need be no more than its first 512 bytes, and reports whether it is a
// slice whose header can be read.
func (i *Inspector) Readable(unit []byte) bool {
	if len(unit) == 0 || unit[0]&0x80 != 0 { // forbidden_zero_bit
		return false
	}
	switch Type(unit) {
	case TypeSPS, TypePPS:
		if !slices.ContainsFunc(i.sets, func(s []byte) bool { return bytes.HasPrefix(s, unit) }) {
			i.learn(unit)
			i.slices = nil // it was made of others
		}
		return false
	case TypePartitionA:
		return i.begins(unit)
	case TypeNonIDR, TypeIDR:
		if i.slices == nil {
			return i.begins(unit)
		}
		_, err := i.slices.Read(unit)
		return err == nil || !errors.Is(err, ErrMalformed) && i.begins(unit)
	}
	return false
}

// begins reads the beginning of a slice's header, which is the same in all streams.
func (i *Inspector) begins(unit []byte) bool {
	const slicesBegin = 16 // bytes that have it whole
	r := bits.NewReader(nal.Unescape(unit[1:min(len(unit), slicesBegin)]))
	first, kind, pps := r.Golomb(), r.Golomb(), r.Golomb()
	known := len(i.pps) == 0 || slices.Contains(i.pps, pps)
	return known && !r.Short() && first < maxMacroblocks && kind <= maxSliceType
}

// maxPPS is how many picture parameter sets a stream has at most, section 7.4.2.2.
const maxPPS = 256

// learn takes note of a picture parameter set's ID.
func (i *Inspector) learn(set []byte) {
	if Type(set) != TypePPS {
		return
	}
	r := bits.NewReader(nal.Unescape(set[1:min(len(set), 8)]))
	if id := r.Golomb(); !r.Short() && id < maxPPS && !slices.Contains(i.pps, id) {
		i.pps = append(i.pps, id)
	}
}
