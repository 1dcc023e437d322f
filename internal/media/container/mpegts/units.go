package mpegts

import (
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/nal"
)

// NAL units of H.264 and HEVC, by what they are in both.

// unitKind is what a NAL unit is for, in both codecs.
type unitKind uint8

const (
	other unitKind = iota
	delimiter
	filler
	setVPS
	setSPS
	setPPS
)

func (c codec) unitKind(unit []byte) unitKind {
	if c == codecH264 {
		switch h264.Type(unit) {
		case h264.TypeAUD:
			return delimiter
		case h264.TypeFiller:
			return filler
		case h264.TypeSPS:
			return setSPS
		case h264.TypePPS:
			return setPPS
		}
		return other
	}
	switch hevc.Type(unit) {
	case hevc.TypeAUD:
		return delimiter
	case hevc.TypeFiller, -1:
		return filler
	case hevc.TypeVPS:
		return setVPS
	case hevc.TypeSPS:
		return setSPS
	case hevc.TypePPS:
		return setPPS
	}
	return other
}

// beginsReference reports whether others may refer to the access unit that begins so. It holds for those of which too
// little is there, too.
func (c codec) beginsReference(b []byte) bool {
	for unit := range nal.AnnexB(b) {
		if is, _ := c.isSlice(unit); is {
			return c.isReference(unit)
		}
	}
	return true
}

// isReference reports whether others may refer to the picture of a slice: by nal_ref_idc; HEVC's types of even numbers
// say that none of the same sub-layer does, table 7-1.
func (c codec) isReference(slice []byte) bool {
	if c == codecH264 {
		return slice[0]>>5&3 != 0
	}
	const lastPair = 14
	t := hevc.Type(slice)
	return t > lastPair || t&1 == 1
}

// isSlice reports whether a NAL unit is a slice of a picture, and whether that resets the order of pictures.
func (c codec) isSlice(unit []byte) (is, reset bool) {
	if c == codecH264 {
		t := h264.Type(unit)
		return t >= h264.TypeNonIDR && t <= h264.TypeIDR, t == h264.TypeIDR
	}
	t := hevc.Type(unit)
	return t >= 0 && t < hevc.TypeVPS, t >= hevc.TypeBLAWLP && t <= typeIDRN
}

// isIDR reports whether a key frame is one: only that can stand in for another one.
func (c codec) isIDR(au []byte) bool {
	if c == codecH264 {
		return true
	}
	for unit := range nal.Units(au, 4) {
		if t := hevc.Type(unit); t >= 0 && t < hevc.TypeVPS {
			return t == typeIDRW || t == typeIDRN
		}
	}
	return false
}

// sliceType is the type of the first slice among an access unit's NAL units, HEVC; -1: there is none.
func sliceType(units [][]byte) int {
	for _, u := range units {
		if t := hevc.Type(u); t >= 0 && t < hevc.TypeVPS {
			return t
		}
	}
	return -1
}

// isKey reports whether an access unit of these NAL units is a key frame.
func (c codec) isKey(units [][]byte) bool {
	if c == codecHEVC {
		t := sliceType(units)
		return t >= hevc.TypeBLAWLP && t <= hevc.TypeCRA
	}
	for _, u := range units {
		if t := h264.Type(u); t >= h264.TypeNonIDR && t <= h264.TypeIDR {
			return t == h264.TypeIDR
		}
	}
	return false
}

// hasRecoveryPoint reports whether an access unit of these NAL units has one, ITU-T H.264 section D.2.8: decoders can
// begin there.
func (c codec) hasRecoveryPoint(units [][]byte) bool {
	for _, u := range units {
		switch {
		case c == codecH264 && h264.Type(u) == h264.TypeSEI && len(u) > 1 && u[1] == seiRecoveryPoint,
			c == codecHEVC && hevc.Type(u) == hevc.TypeSEI && len(u) > 2 && u[2] == seiRecoveryPoint:
			return true
		}
	}
	return false
}

// reorders reads from a sequence parameter set how many pictures are reordered; -1: it does not say.
func (c codec) reorders(sps []byte) int {
	if c == codecHEVC {
		if info, err := hevc.Info(sps); err == nil {
			return info.ReorderFrames
		}
		return -1
	}
	if info, err := h264.Info(sps); err == nil {
		return info.ReorderFrames
	}
	return -1
}

const seiRecoveryPoint = 6 // payload type; encoders give it a unit of its own

// Leading pictures and IDRs, ITU-T H.265 table 7-1.
const (
	typeIDRW  = 19
	typeIDRN  = 20
	typeRADLN = 6
	typeRASLN = 8
	typeRASLR = 9
)
