package aac

import "fmt"

// ADTSHeaderSize is how many bytes ParseADTS needs.
const ADTSHeaderSize = 7

// ADTS is what the header of an ADTS frame says, ISO 13818-7 section 6.2.
type ADTS struct {
	// Header is how many bytes stand before the raw_data_block, Size how many the frame has with them.
	Header, Size int
	// ASC is the AudioSpecificConfig of the stream.
	ASC [2]byte
}

// ParseADTS reads the beginning of an ADTS frame. Only AAC-LC and one raw_data_block for each frame are taken, as all
// encoders of streams do.
func ParseADTS(b []byte) (ADTS, error) {
	if len(b) < ADTSHeaderSize || b[0] != 0xff || b[1]&0xf6 != 0xf0 {
		return ADTS{}, fmt.Errorf("%w: no ADTS frame in %d bytes", ErrMalformed, len(b))
	}
	object, rate, layout := b[2]>>6+1, b[2]>>2&15, b[2]&1<<2|b[3]>>6
	a := ADTS{Header: 7, Size: int(b[3]&3)<<11 | int(b[4])<<3 | int(b[5]>>5)}
	if b[1]&1 == 0 {
		a.Header = 9 // with a checksum
	}
	switch {
	case object != ObjectLC || layout == 0 || b[6]&3 != 0:
		return ADTS{}, fmt.Errorf("%w: ADTS with object type %d, layout %d and %d blocks", ErrUnsupported, object,
			layout, b[6]&3+1)
	case int(rate) >= len(sampleRates) || a.Size <= a.Header:
		return ADTS{}, fmt.Errorf("%w: ADTS frame of %d bytes, sample rate index %d", ErrMalformed, a.Size, rate)
	}
	a.ASC = [2]byte{object<<3 | rate>>1, rate<<7 | layout<<3}
	return a, nil
}
