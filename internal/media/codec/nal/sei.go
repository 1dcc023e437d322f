package nal

import "iter"

// SEI iterates over the messages of an SEI unit's payload, which is what follows the unit's header: payloadType and the
// message, ITU-T H.264 section 7.3.2.3.1 and H.265 section 7.3.2.4. It ends silently at a message that is longer than
// the unit.
func SEI(payload []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		b := Unescape(payload)
		number := func() (n int) {
			for len(b) > 0 {
				c := b[0]
				b = b[1:]
				if n += int(c); c != 0xff {
					break
				}
			}
			return n
		}
		for len(b) > 2 { // the last byte is the stop bit's
			kind, size := number(), number()
			if size > len(b) || !yield(kind, b[:size:size]) {
				return
			}
			b = b[size:]
		}
	}
}
