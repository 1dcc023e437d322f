package bits

// Writer writes big-endian bit fields. Its zero value is empty.
type Writer struct {
	b    []byte
	free int // bits of the last byte
}

// Bits writes the lowest n bits of v.
func (w *Writer) Bits(v, n int) {
	for n--; n >= 0; n-- {
		if w.free == 0 {
			w.b, w.free = append(w.b, 0), 8
		}
		w.free--
		w.b[len(w.b)-1] |= byte(v>>n&1) << w.free
	}
}

// Flag writes one bit.
func (w *Writer) Flag(v bool) {
	if v {
		w.Bits(1, 1)
	} else {
		w.Bits(0, 1)
	}
}

// Golomb writes an Exp-Golomb number, ue(v) in ITU-T H.264 and H.265.
func (w *Writer) Golomb(v int) {
	n := 0
	for v+1 >= 1<<(n+1) {
		n++
	}
	w.Bits(0, n)
	w.Bits(v+1, n+1)
}

// Signed writes a signed Exp-Golomb number, se(v).
func (w *Writer) Signed(v int) {
	if v > 0 {
		w.Golomb(2*v - 1)
	} else {
		w.Golomb(-2 * v)
	}
}

// Fill writes ones up to a whole byte.
func (w *Writer) Fill() { w.Bits(0xff, w.free) }

// Trail writes a one and zeros up to a whole byte, rbsp_trailing_bits.
func (w *Writer) Trail() {
	w.Bits(1, 1)
	w.free = 0
}

// Append writes whole bytes behind a whole byte.
func (w *Writer) Append(b []byte) { w.b, w.free = append(w.b, b...), 0 }

// Bytes are those that were begun.
func (w *Writer) Bytes() []byte { return w.b }
