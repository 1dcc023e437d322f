// Package bits reads and writes the bit fields of codec headers.
// Bytes in, values out: it must never know files, sockets, time of day or a logger, and it starts no goroutines.
package bits

// Reader reads big-endian bit fields. Past the end it gives zeros and says Short, so that a header is checked once,
// after it was read.
type Reader struct {
	b     []byte
	pos   int
	short bool
}

// NewReader returns a Reader of b.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Short reports whether more was read than there is.
func (r *Reader) Short() bool { return r.short }

// Left is how many bits are left.
func (r *Reader) Left() int { return len(r.b)*8 - r.pos }

// Pos is how many bits were read.
func (r *Reader) Pos() int { return r.pos }

// Bits reads an unsigned number of n bits, at most 63.
func (r *Reader) Bits(n int) int {
	if n > r.Left() {
		r.short, r.pos = true, len(r.b)*8
		return 0
	}
	v := 0
	for range n {
		v = v<<1 | int(r.b[r.pos/8]>>(7-r.pos%8)&1)
		r.pos++
	}
	return v
}

// Flag reads one bit.
func (r *Reader) Flag() bool { return r.Bits(1) == 1 }

// Skip passes over n bits.
func (r *Reader) Skip(n int) {
	if n > r.Left() {
		r.short, n = true, r.Left()
	}
	r.pos += max(n, 0)
}

// Align goes on to the next whole byte.
func (r *Reader) Align() { r.pos += (8 - r.pos%8) % 8 }

// Golomb reads an Exp-Golomb number, ue(v) in ITU-T H.264 and H.265 and uvlc() in AV1. One of more than 32 bits counts
// as Short.
func (r *Reader) Golomb() int {
	zeros := 0
	for !r.Flag() {
		if zeros++; zeros > 32 || r.short {
			r.short = true
			return 0
		}
	}
	return 1<<zeros - 1 + r.Bits(zeros)
}

// Signed reads a signed Exp-Golomb number, se(v).
func (r *Reader) Signed() int {
	v := r.Golomb()
	if v&1 == 1 {
		return (v + 1) / 2
	}
	return -v / 2
}
