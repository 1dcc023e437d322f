package codec

import (
	"bytes"
	"iter"
	"math/bits"

	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
)

// Captions is what a picture has of closed captions, CEA-608 and CEA-708.
type Captions uint8

// What there may be of them, in ascending order.
const (
	NoCaptions      Captions = iota
	CaptionsPadding          // there is a channel for them, which carries nothing that a decoder would show
	CaptionsText             // commands or text
)

// registered is payloadType user_data_registered_itu_t_t35 of an SEI message, ITU-T H.264 section D.1.6 and H.265
// section D.2.6.
const registered = 4

// CaptionsOf looks for closed captions in a picture, an access unit in the form of a sample with lengths of 4 bytes: of
// H.264, HEVC or AV1, anywhere in it; other codecs carry none.
func CaptionsOf(c frame.Codec, au []byte) Captions {
	found := NoCaptions
	for message := range registeredOf(c, au) {
		found = max(found, captionsOfT35(message))
	}
	return found
}

// CaptionData calls yield with each valid construct of cc_data in a picture, as CaptionsOf takes it, in their order:
// cc_type (0 and 1 are the fields of CEA-608, 2 and 3 a packet of CEA-708 and its beginning) and the two bytes.
func CaptionData(c frame.Codec, au []byte, yield func(kind, first, second byte)) {
	for message := range registeredOf(c, au) {
		for b := ccData(message); len(b) >= 3; b = b[3:] {
			if b[0]&valid != 0 {
				yield(b[0]&3, b[1], b[2])
			}
		}
	}
}

// registeredOf are the messages of ITU-T T.35 in a picture.
func registeredOf(c frame.Codec, au []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		switch c { //nolint:exhaustive // the others carry none
		case frame.H264:
			for unit := range h264.NALs(au, 4) {
				if h264.Type(unit) == h264.TypeSEI && !registeredOfSEI(unit[1:], yield) {
					return
				}
			}
		case frame.HEVC:
			for unit := range nal.Units(au, 4) {
				t := hevc.Type(unit)
				sei := (t == hevc.TypeSEI || t == hevc.TypeSuffixSEI) && len(unit) > 2
				if sei && !registeredOfSEI(unit[2:], yield) {
					return
				}
			}
		case frame.AV1:
			for message := range av1.T35(au) {
				if !yield(message) {
					return
				}
			}
		}
	}
}

// registeredOfSEI is registeredOf of one SEI unit; false: yield wants no more.
func registeredOfSEI(payload []byte, yield func([]byte) bool) bool {
	for kind, message := range nal.SEI(payload) {
		if kind == registered && !yield(message) {
			return false
		}
	}
	return true
}

// valid is cc_valid of a construct.
const valid = 4

// ccData is cc_data of ATSC A/53 Part 4 section 6.2.3 in a message of ITU-T T.35, whole constructs of three bytes; nil:
// there is none.
func ccData(message []byte) []byte {
	const process = 0x40
	// country, provider, user_identifier, user_data_type_code
	b, ok := bytes.CutPrefix(message, []byte("\xb5\x00\x31GA94\x03"))
	if !ok || len(b) < 2 || b[0]&process == 0 {
		return nil
	}
	count := min(int(b[0]&0x1f), (len(b)-2)/3)
	return b[2:][:3*count]
}

// captionsOfT35 says what there is in a message.
func captionsOfT35(message []byte) Captions {
	found := NoCaptions
	for b := ccData(message); len(b) >= 3; b = b[3:] {
		if b[0]&valid == 0 {
			continue
		}
		found = max(found, CaptionsPadding)
		if shows(b[0]&3, b[1], b[2]) {
			return CaptionsText
		}
	}
	return found
}

// shows reports whether a pair of bytes tells a decoder of captions that there are some: a control code of CEA-608
// section 8.4, whose bytes have odd parity, or the head of a CEA-708 packet with a block of a service, CTA-708 sections
// 5 and 6.
func shows(kind, first, second byte) bool {
	const field1, field2, packetStart = 0, 1, 3
	switch kind {
	case field1, field2:
		return first&0x70 == 0x10 && odd(first) && odd(second)
	case packetStart:
		return second>>5 != 0
	}
	return false
}

func odd(b byte) bool { return bits.OnesCount8(b)&1 == 1 }
