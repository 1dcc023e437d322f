package slate

import (
	"bytes"
	"slices"

	"millrace/internal/media/codec/ac3"
	"millrace/internal/media/codec/flac"
	"millrace/internal/media/codec/mp3"
	"millrace/internal/media/codec/opus"
	"millrace/internal/media/frame"
)

// A packet of silence is what each codec has the fewest words for: no spectrum, no mantissas, a constant. It is written
// here and not encoded, since that is exact, needs no encoder and takes no time; ffmpeg decodes each in the tests.

// writer writes bits, the most significant one first.
type writer struct {
	out  []byte
	free int // bits of the last byte
}

func (w *writer) put(v uint, n int) {
	for ; n > 0; n-- {
		if w.free == 0 {
			w.out, w.free = append(w.out, 0), 8
		}
		w.free--
		w.out[len(w.out)-1] |= byte(v>>(n-1)&1) << w.free
	}
}

// opusLengths are the lengths of CELT's frames in samples at 48 kHz, in the order of their configurations at full band.
var opusLengths = [...]int64{120, 240, 480, 960} //nolint:gochecknoglobals // a table

// silentOpus is a frame of silence in CELT at full band, RFC 6716 section 3.1, from configuration 28 on; for more than
// two channels one of each stream, all but the last one delimited by themselves (appendix B).
func silentOpus(c frame.Config, length int) []byte {
	if _, err := opus.TrackConfig(c.Header); err != nil {
		return nil
	}
	const channels, family, layout = 1, 10, 11
	streams, coupled := 1, int(c.Header[channels])-1
	if c.Header[family] != 0 {
		streams, coupled = int(c.Header[layout]), int(c.Header[layout+1])
	}
	var out []byte
	for i := range streams {
		toc := byte(28+length) << 3
		if i < coupled {
			toc |= 4 // stereo
		}
		if out = append(out, toc); i < streams-1 {
			out = append(out, 2)
		}
		out = append(out, 0xff, 0xfe)
	}
	return out
}

// silentFLAC is a frame whose channels are constant, RFC 9639 section 9; sample rate and bits are STREAMINFO's.
func silentFLAC(c frame.Config, samples int64) []byte {
	if len(c.Header) != flac.InfoSize || c.Channels < 1 || c.Channels > 8 || samples < 16 || samples > 1<<16 {
		return nil
	}
	bits := int(c.Header[12]&1)<<4 + int(c.Header[13]>>4) + 1
	var w writer
	w.put(0xfff8, 16)
	if !bytes.Equal(c.Header[:2], c.Header[2:4]) {
		w.out[1] |= 1 // frames of different lengths
	}
	w.put(7, 4) // the number of samples follows, in 16 bits
	w.put(0, 4) // the sample rate is in STREAMINFO
	w.put(uint(c.Channels-1), 4)
	w.put(0, 4) // so are the bits
	w.put(0, 8) // the frame's number, which is of use for seeking in files alone
	w.put(uint(samples-1), 16)
	w.put(uint(crc(w.out, 0x07, 8)), 8)
	for range c.Channels {
		w.put(0, 8) // constant
		w.put(0, bits)
	}
	w.free = 0
	w.put(uint(crc(w.out, 0x8005, 16)), 16)
	return w.out
}

// crc is the remainder of b, with `width` zero bits behind it, by a polynomial without its highest term.
func crc(b []byte, polynomial uint32, width int) uint32 {
	var v uint32
	for _, c := range b {
		v ^= uint32(c) << (width - 8)
		for range 8 {
			v = v<<1 ^ polynomial*(v>>(width-1)&1)
		}
	}
	return v & (1<<width - 1)
}

// silentMP3 is a frame without main data, ISO 11172-3 section 2.4.1, at the lowest bit rate, in which the side
// information has room at every sample rate.
func silentMP3(c frame.Config) []byte {
	for _, version := range []byte{3, 2, 0} {
		for rate := range byte(3) {
			head := []byte{0xff, 0xe3 | version<<3, 1<<4 | rate<<2, 0}
			if c.Channels == 1 {
				head[3] = 3 << 6
			}
			if h, err := mp3.Parse(head); err == nil && h.SampleRate == c.SampleRate && c.Channels <= 2 {
				return append(head, make([]byte, h.Size-len(head))...)
			}
		}
	}
	return nil
}

// silentAC3 is a syncframe, ATSC A/52 section 5.3, whose mantissas have no bits, of the size and with the channels that
// AC3SpecificBox says.
func silentAC3(specific []byte) []byte {
	if len(specific) != 3 {
		return nil
	}
	v := uint(specific[0])<<16 | uint(specific[1])<<8 | uint(specific[2])
	rate, id, mode, acmod, lfe, size := v>>22, v>>17&31, v>>14&7, v>>11&7, v>>10&1, v>>5&31
	var w writer
	w.put(0x0b77, 16)
	w.put(0, 16) // crc1
	w.put(rate, 2)
	w.put(size<<1, 6)
	w.put(id, 5)
	w.put(mode, 3)
	w.put(acmod, 3)
	if acmod&1 != 0 && acmod != 1 {
		w.put(0, 2) // mix level of the centre
	}
	if acmod&4 != 0 {
		w.put(0, 2) // of the surround channels
	}
	if acmod == 2 {
		w.put(0, 2)
	}
	w.put(lfe, 1)
	w.put(31, 5) // dialogue level
	w.put(0, 3)
	if acmod == 0 { // two programs
		w.put(31, 5)
		w.put(0, 3)
	}
	w.put(0, 5)
	channels := []int{2, 1, 2, 3, 3, 4, 4, 5}[acmod]
	for block := range 6 {
		ac3Block(&w, channels, acmod, lfe == 1, block == 0)
	}
	h, err := ac3.Parse(w.out)
	if err != nil || h.Size < len(w.out)+4 {
		return nil
	}
	out := append(w.out, make([]byte, h.Size-len(w.out))...)
	first := (h.Size/2)/2*2 + (h.Size/2)/8*2 // five eighths, in bytes
	sum := ac3Begin(out[4:first])
	out[2], out[3] = byte(sum>>8), byte(sum)
	sum = uint16(crc(out[first:h.Size-2], 0x8005, 16))
	out[h.Size-2], out[h.Size-1] = byte(sum>>8), byte(sum)
	return out
}

// ac3Block writes an audio block, section 5.4.3: the first one has the exponents and an SNR offset that leaves no bits
// for mantissas.
func ac3Block(w *writer, channels int, acmod uint, lfe, first bool) {
	set := uint(0)
	if first {
		set = 1
	}
	w.put(0, 2*channels) // long blocks, and no dither in place of what has no bits
	w.put(0, 1)          // dynamic range
	if acmod == 0 {
		w.put(0, 1)
	}
	w.put(set, 1) // coupling: not in use
	if first {
		w.put(0, 1)
	}
	if acmod == 2 {
		if w.put(set, 1); first {
			w.put(0, 4) // no matrix
		}
	}
	w.put(ac3Repeat(3*set, 2, channels), 2*channels) // exponents: for four mantissas each, or as before
	if lfe {
		w.put(set, 1)
	}
	if first {
		const steady = 2*25 + 2*5 + 2 // three exponents like the one before
		w.put(0, 6*channels)          // bandwidth: 73 mantissas
		for range channels {
			w.put(15, 4)
			for range 6 {
				w.put(steady, 7)
			}
			w.put(0, 2)
		}
		if lfe {
			w.put(15, 4)
			w.put(steady, 7)
			w.put(steady, 7)
		}
	}
	w.put(set, 1) // bit allocation
	if first {
		w.put(0, 11)
	}
	w.put(set, 1) // SNR offsets, all 0
	if first {
		n := channels
		if lfe {
			n++
		}
		w.put(0, 6+7*n)
	}
	w.put(0, 2) // no other allocation, nothing skipped
}

// ac3Repeat is v of so many bits, n times.
func ac3Repeat(v uint, bits, n int) (out uint) {
	for range n {
		out = out<<bits | v
	}
	return out
}

// ac3Begin is crc1: what has to stand in front of b so that the remainder of both is 0. It runs the division backwards.
func ac3Begin(b []byte) uint16 {
	const polynomial = 0x8005
	var v uint16
	back := func(bit uint16) {
		if v&1 != 0 {
			v = (v^polynomial)>>1 | (1^bit)<<15
			return
		}
		v = v>>1 | bit<<15
	}
	for _, c := range slices.Backward(b) {
		for i := range 8 {
			back(uint16(c >> i & 1))
		}
	}
	for range 16 {
		back(0)
	}
	return v
}
