package aac

import (
	"bytes"
	"fmt"

	"millrace/internal/media/codec/bits"
)

// LOASHeaderSize is how many bytes ParseLOAS needs and how many stand before an AudioMuxElement.
const LOASHeaderSize = 3

// ParseLOAS reads the beginning of an AudioSyncStream, ISO 14496-3 section 1.7.2, and returns how many bytes its
// AudioMuxElement has.
func ParseLOAS(b []byte) (size int, err error) {
	if len(b) < LOASHeaderSize || b[0] != 0x56 || b[1]&0xe0 != 0xe0 {
		return 0, fmt.Errorf("%w: no AudioSyncStream in %d bytes", ErrMalformed, len(b))
	}
	return int(b[1]&0x1f)<<8 | int(b[2]), nil
}

// LATM reads the AudioMuxElements of one stream, ISO 14496-3 section 1.7.3: one program with one layer of AAC-LC, as
// encoders of streams send it.
type LATM struct {
	asc       []byte
	subframes int
}

// ASC is the AudioSpecificConfig as of the last element; nil before the first that has one.
func (l *LATM) ASC() []byte { return l.asc }

// Read reads an AudioMuxElement that may have its configuration in it and returns its raw_data_blocks: none while no
// element had a configuration.
func (l *LATM) Read(element []byte) ([][]byte, error) {
	r := bits.NewReader(element)
	if !r.Flag() { // useSameStreamMux
		if err := l.configure(element, r); err != nil {
			l.asc = nil
			return nil, err
		}
	}
	if l.asc == nil {
		return nil, nil
	}
	var blocks [][]byte
	for range l.subframes {
		n := 0
		for more := true; more && !r.Short(); { // PayloadLengthInfo
			v := r.Bits(8)
			n, more = n+v, v == 255
		}
		if n == 0 || r.Left() < 8*n {
			return blocks, fmt.Errorf("%w: AudioMuxElement of %d bytes ends in its payload", ErrMalformed, len(element))
		}
		blocks = append(blocks, cut(element, r.Pos(), 8*n))
		r.Skip(8 * n)
	}
	return blocks, nil
}

// configure reads StreamMuxConfig, section 1.7.3.1.
func (l *LATM) configure(element []byte, r *bits.Reader) error {
	version := r.Bits(1)
	if version == 1 && r.Flag() {
		return fmt.Errorf("%w: LATM of audioMuxVersionA 1", ErrUnsupported)
	}
	if version == 1 {
		latmValue(r) // taraBufferFullness
	}
	sameTime := r.Flag()
	subframes := r.Bits(6) + 1
	if programs, layers := r.Bits(4)+1, r.Bits(3)+1; programs > 1 || layers > 1 || !sameTime {
		return fmt.Errorf("%w: LATM with %d programs of %d layers", ErrUnsupported, programs, layers)
	}
	var asc []byte
	if version == 1 {
		n := latmValue(r)
		if n > r.Left() || n > 8*maxASC {
			return fmt.Errorf("%w: AudioSpecificConfig of %d bits", ErrMalformed, n)
		}
		asc = cut(element, r.Pos(), n)
		r.Skip(n)
	} else {
		begin := r.Pos()
		if err := skipConfig(r); err != nil {
			return err
		}
		asc = cut(element, begin, r.Pos()-begin)
	}
	if kind := r.Bits(3); kind != 0 {
		return fmt.Errorf("%w: LATM with frames of length type %d", ErrUnsupported, kind)
	}
	r.Bits(8)     // latmBufferFullness
	if r.Flag() { // otherDataPresent: it stands behind the payload and is not looked at, but its length comes now
		if version == 1 {
			latmValue(r)
		} else {
			for r.Flag() && !r.Short() {
				r.Bits(8)
			}
			r.Bits(8)
		}
	}
	if r.Flag() { // crcCheckPresent
		r.Bits(8)
	}
	if r.Short() {
		return fmt.Errorf("%w: StreamMuxConfig ends too early", ErrMalformed)
	}
	if _, err := Parse(asc); err != nil {
		return err
	}
	if l.subframes = subframes; !bytes.Equal(asc, l.asc) {
		l.asc = asc
	}
	return nil
}

// skipConfig reads past an AudioSpecificConfig whose length is not told: as Parse does, but nothing may follow it.
func skipConfig(r *bits.Reader) error {
	object := objectType(r)
	sampleRate(r)
	layout := r.Bits(4)
	if object == ObjectSBR || object == ObjectPS {
		sampleRate(r)
		object = objectType(r)
	}
	if object != ObjectLC || layout == 0 {
		return fmt.Errorf("%w: LATM with object type %d and channel configuration %d", ErrUnsupported, object, layout)
	}
	r.Bits(1) // frameLengthFlag
	if r.Flag() {
		r.Bits(14) // core coder delay
	}
	r.Bits(1) // extensionFlag
	return nil
}

// latmValue is LatmGetValue, section 1.7.3.1.
func latmValue(r *bits.Reader) int {
	v := 0
	for range r.Bits(2) + 1 {
		v = v<<8 | r.Bits(8)
	}
	return v
}

// cut copies n bits of b from bit at on, with zeros up to a whole byte.
func cut(b []byte, at, n int) []byte {
	out := make([]byte, (n+7)/8)
	b, shift := b[at/8:], at%8
	for i := range out {
		v := uint16(b[i]) << 8
		if i+1 < len(b) {
			v |= uint16(b[i+1])
		}
		out[i] = byte(v << shift >> 8)
	}
	if last := n % 8; last > 0 {
		out[len(out)-1] &= 0xff << (8 - last)
	}
	return out
}
