package sniff

import (
	"bytes"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/nal"
)

// byteStream tells H.264 and HEVC in the form of Annex B: start codes, and a sequence parameter set that can be read
// with nothing in front of it but what may stand there.
func byteStream(head []byte) Format {
	if !bytes.HasPrefix(bytes.TrimLeft(head, "\x00"), []byte{1}) || !bytes.HasPrefix(head, []byte{0, 0}) {
		return Unknown
	}
	const few = 8 // units in front of the parameter set
	n := 0
	for unit := range nal.AnnexB(head) {
		if n++; n > few || len(unit) < 2 || unit[0]&0x80 != 0 {
			break
		}
		if _, err := h264.Info(unit); err == nil && h264.Type(unit) == h264.TypeSPS {
			return H264
		}
		if _, err := hevc.Info(unit); err == nil && hevc.Type(unit) == hevc.TypeSPS {
			return HEVC
		}
		first, second := h264.Type(unit), hevc.Type(unit)
		if first != h264.TypeAUD && first != h264.TypeSEI && second != hevc.TypeAUD && second != hevc.TypeVPS {
			break
		}
	}
	return Unknown
}

// Frame sizes of AC-3 in 16-bit words for 32 kHz, by half of frmsizecod: ETSI TS 102 366 table 4.13. Those of 48 kHz
// are two thirds of that.
var ac3Words = [19]int{ //nolint:gochecknoglobals // a table
	96, 120, 144, 168, 192, 240, 288, 336, 384, 480, 576, 672, 768, 960, 1152, 1344, 1536, 1728, 1920,
}

// ac3Rates are the bit rates that go with them, in kbit/s.
var ac3Rates = [19]int{ //nolint:gochecknoglobals // a table
	32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
}

// ac3Length is the length of the AC-3 syncframe that b begins with, ETSI TS 102 366 section 4.3; 0 when it is none.
func ac3Length(b []byte) int {
	if len(b) < 6 || b[0] != 0x0b || b[1] != 0x77 || b[5]>>3 > 10 {
		return 0
	}
	code, rate := int(b[4]&0x3f), b[4]>>6
	if code>>1 >= len(ac3Words) {
		return 0
	}
	switch rate {
	case 0: // 48 kHz
		return ac3Words[code>>1] * 2 / 3 * 2
	case 1: // 44.1 kHz
		return (ac3Rates[code>>1]*96000/44100 + code&1) * 2 //nolint:mnd // words of 1536 samples, rounded down, and one more
	case 2: // 32 kHz
		return ac3Words[code>>1] * 2
	}
	return 0
}

// eac3Length is that of E-AC-3, ETSI TS 102 366 section E.1.2.
func eac3Length(b []byte) int {
	if len(b) < 6 || b[0] != 0x0b || b[1] != 0x77 || b[5]>>3 <= 10 || b[5]>>3 > 16 {
		return 0
	}
	return (int(b[2]&7)<<8 | int(b[3]) + 1) * 2
}
