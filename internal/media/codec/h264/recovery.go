package h264

import (
	"millrace/internal/media/codec/bits"
	"millrace/internal/media/codec/nal"
)

// recoveryPoint is the payloadType of a recovery point SEI message, section D.1.8.
const recoveryPoint = 6

// maxRecovery bounds recovery_frame_cnt: MaxFrameNum is 65536 at most.
const maxRecovery = 1 << 16

// Entry says how a decoder may begin with an access unit that its container takes for a key frame, whose lengths have lengthSize bytes. An IDR is
// all that is needed. At any other, recovery_frame_cnt frames have to be decoded before pictures are as they should be (none in an open group
// of pictures, many where the picture is refreshed bit by bit), and what is shown before it may refer to what was in front of it.
func Entry(au []byte, lengthSize int) (idr bool, recovery int) {
	for unit := range NALs(au, lengthSize) {
		switch t := Type(unit); {
		case t == TypeSEI:
			if n, ok := recoveryIn(unit); ok {
				recovery = n
			}
		case t >= TypeNonIDR && t <= TypeIDR:
			if t == TypeIDR {
				return true, 0
			}
			return false, recovery
		}
	}
	return false, recovery
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
