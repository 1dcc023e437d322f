package aac

import "millrace/internal/media/codec/bits"

// Silence is a raw_data_block, ISO 14496-3 section 4.4.2.1, whose channels have no spectrum: it says the same at every
// sample rate. Without extension payload a decoder for SBR makes silence of it too. nil for an AudioSpecificConfig that
// can't be read.
func Silence(asc []byte) []byte {
	const endOfBlock = 7
	elements, err := Elements(asc)
	if err != nil || len(elements) == 0 {
		return nil
	}
	var w bits.Writer
	for _, e := range elements {
		w.Bits(e.ID, 3)
		w.Bits(e.Tag, 4)
		streams := 1
		if e.ID == ChannelPair {
			w.Bits(0, 1) // no common window
			streams = 2
		}
		for range streams {
			w.Bits(0, 8)  // global_gain
			w.Bits(0, 11) // ics_info: a long window, max_sfb 0, no prediction
			w.Bits(0, 3)  // no pulses, noise shaping or gain control
		}
	}
	w.Bits(endOfBlock, 3)
	return w.Bytes()
}
