package h264

import (
	"millrace/internal/media/codec/bits"
	"millrace/internal/media/codec/nal"
)

// recoveryPoint is the payloadType of a recovery point SEI message, section D.1.8.
const recoveryPoint = 6

// maxRecovery bounds recovery_frame_cnt: MaxFrameNum is 65536 at most.
const maxRecovery = 1 << 16

// Entry says how a decoder may begin with an access unit that its container takes for a key frame, whose lengths have
// lengthSize bytes. An IDR is all that is needed. At any other, recovery_frame_cnt frames have to be decoded before
// pictures are as they should be (none in an open group of pictures, many where the picture is refreshed bit by bit),
// and what is shown before it may refer to what was in front of it.
func Entry(au []byte, lengthSize int) (idr bool, recovery int) {
	idr, recovery, _ = entry(au, lengthSize)
	return idr, recovery
}

// Recovers reports whether a decoder can begin with an access unit, whose lengths have lengthSize bytes: at an IDR, and
// at a recovery point, from which so many frames have to be decoded before pictures are as they should be
// (recovery_frame_cnt).
func Recovers(au []byte, lengthSize int) (frames int, ok bool) {
	idr, frames, said := entry(au, lengthSize)
	return frames, idr || said
}

// entry is Entry, and whether there is a recovery point.
func entry(au []byte, lengthSize int) (idr bool, recovery int, said bool) {
	for unit := range NALs(au, lengthSize) {
		switch t := Type(unit); {
		case t == TypeSEI:
			if n, ok := recoveryIn(unit); ok {
				recovery, said = n, true
			}
		case t == TypeIDR:
			return true, 0, said
		case t >= TypeNonIDR && t < TypeIDR:
			return false, recovery, said
		}
	}
	return false, recovery, said
}

// recoveryIn looks for a recovery point among the messages of an SEI unit.
func recoveryIn(unit []byte) (frames int, ok bool) {
	for kind, message := range nal.SEI(unit[1:]) {
		if kind == recoveryPoint {
			r := bits.NewReader(message)
			n := r.Golomb()
			return n, !r.Short() && n <= maxRecovery
		}
	}
	return 0, false
}
