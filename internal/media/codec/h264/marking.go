package h264

import (
	"slices"

	"millrace/internal/media/codec/bits"
	"millrace/internal/media/codec/nal"
)

// operation is a memory_management_control_operation, section 7.4.3.3, with what follows it.
type operation struct{ code, first, second int }

// What operations do, table 7-9.
const (
	endOperations = 0
	forgetShort   = 1 // first: difference_of_pic_nums_minus1
	forgetLong    = 2
	shortToLong   = 3
	mostLong      = 4
	forgetAll     = 5
	currentToLong = 6
)

// readMarking reads which pictures remain references, dec_ref_pic_marking, section 7.3.3.3.
func readMarking(r *bits.Reader, h *Slice) {
	if h.IDR {
		r.Skip(2)
		return
	}
	if h.Adaptive = r.Flag(); !h.Adaptive {
		return
	}
	for n := 0; n < maxOperations && !r.Short(); n++ {
		op := operation{code: r.Golomb()}
		switch op.code {
		case endOperations:
			return
		case forgetShort, forgetLong, mostLong, currentToLong:
			op.first = r.Golomb()
		case shortToLong:
			op.first, op.second = r.Golomb(), r.Golomb()
		case forgetAll:
			h.Restarts = true
		}
		h.operations = append(h.operations, op)
	}
}

// writeMarking writes what readMarking reads, of a picture that is no IDR.
func writeMarking(w *bits.Writer, h Slice) {
	w.Flag(h.Adaptive)
	if !h.Adaptive {
		return
	}
	for _, op := range h.operations {
		w.Golomb(op.code)
		switch op.code {
		case forgetShort, forgetLong, mostLong, currentToLong:
			w.Golomb(op.first)
		case shortToLong:
			w.Golomb(op.first)
			w.Golomb(op.second)
		}
	}
	w.Golomb(endOperations)
}

// Held is which references a decoder has, section 8.2.5. Its zero value has none.
type Held struct {
	short []int // frame numbers of the short-term references, in decoding order
	long  bool  // there are or were long-term ones: the number of the others is not known
}

// Follow does what a picture does to the references. Its number is the next one's: where some are missing they have
// been put in.
func (hd *Held) Follow(x *Slices, h Slice) {
	switch {
	case h.IDR || h.Restarts:
		*hd = Held{short: append(hd.short[:0], 0)}
		return
	case !h.Reference:
		return
	case !h.Adaptive:
		hd.makeRoom(x)
	}
	current := true
	for _, op := range h.operations {
		switch op.code {
		case forgetShort, shortToLong:
			hd.forget(x.named(h, op))
		case currentToLong:
			current = false
		}
		hd.long = hd.long || op.code != forgetShort
	}
	if current {
		hd.makeRoom(x) // a stream that has more than it says is bounded, too
		hd.short = append(hd.short, h.FrameNum)
	}
}

func (hd *Held) makeRoom(x *Slices) {
	if n := len(hd.short) - max(x.references, 1) + 1; n > 0 {
		hd.short = slices.Delete(hd.short, 0, n)
	}
}

func (hd *Held) forget(num int) (had bool) {
	n := len(hd.short)
	hd.short = slices.DeleteFunc(hd.short, func(have int) bool { return have == num })
	return len(hd.short) < n
}

// named is the frame number of the short-term reference that an operation of a picture names, equation 8-39.
func (s *Slices) named(h Slice, op operation) int {
	return ((h.FrameNum-op.first-1)%s.FrameNums() + s.FrameNums()) % s.FrameNums()
}

// Possible is a picture's header whose operations name only references that are held: behind pictures that were put in
// for lost ones, of which it is not known what they asked for, others may be held than the encoder had. changed: it
// asked for one that is not; the oldest goes in its place where there is no room.
func (hd *Held) Possible(x *Slices, h Slice) (possible Slice, changed bool) {
	if hd.long || !h.Adaptive || h.Restarts || h.IDR {
		return h, false
	}
	after := Held{short: slices.Clone(hd.short)}
	var kept []operation
	for _, op := range h.operations {
		if op.code != forgetShort {
			return h, false
		}
		if after.forget(x.named(h, op)) {
			kept = append(kept, op)
		} else {
			changed = true
		}
	}
	for len(after.short) >= max(x.references, 1) {
		oldest := after.short[0]
		after.short = after.short[1:]
		kept = append(kept, operation{
			code:  forgetShort,
			first: (h.FrameNum - oldest - 1 + x.FrameNums()) % x.FrameNums(),
		})
		changed = true
	}
	h.operations = kept
	return h, changed
}

// Mark writes a slice again with the operations of h, which is its picture's header. Errors: ErrMalformed,
// ErrUnsupported.
func (s *Slices) Mark(unit []byte, h Slice) ([]byte, error) {
	own, err := s.Read(unit)
	if err != nil {
		return nil, err
	}
	if own.IDR || !own.Reference {
		return nil, ErrUnsupported
	}
	payload := nal.Unescape(unit[1:])
	r := bits.NewReader(payload)
	var w bits.Writer
	copyBits(&w, r, own.marking[0])
	writeMarking(&w, h)
	r.Skip(own.marking[1] - own.marking[0])
	rest := *r
	s.skipToData(r, own)
	copyBits(&w, &rest, r.Pos()-rest.Pos())
	if r.Short() {
		return nil, malformed("slice of %d bytes", len(unit))
	}
	if s.cabac {
		r.Align() // cabac_alignment_one_bit
		w.Fill()
		w.Append(payload[r.Pos()/8:])
	} else {
		copyBits(&w, r, r.Left()-trailing(payload))
		w.Trail()
	}
	return slices.Concat(unit[:1], nal.Escape(w.Bytes())), nil
}

// skipToData reads what is behind dec_ref_pic_marking in a slice header, section 7.3.3.
func (s *Slices) skipToData(r *bits.Reader, h Slice) {
	if s.cabac && !h.Intra {
		r.Golomb() // cabac_init_idc
	}
	r.Signed() // slice_qp_delta
	if s.deblock && r.Golomb() != 1 {
		r.Signed() // slice_alpha_c0_offset_div2
		r.Signed() // slice_beta_offset_div2
	}
}

func copyBits(w *bits.Writer, r *bits.Reader, n int) {
	const word = 32
	for ; n > word; n -= word {
		w.Bits(r.Bits(word), word)
	}
	if n > 0 {
		w.Bits(r.Bits(n), n)
	}
}

// trailing is how many bits rbsp_trailing_bits and the zeros behind it have.
func trailing(payload []byte) int {
	n := 0
	for i := len(payload) - 1; i >= 0 && payload[i] == 0; i-- {
		n += 8
	}
	if n == 8*len(payload) {
		return n
	}
	for b := payload[len(payload)-1-n/8]; b&1 == 0; b >>= 1 {
		n++
	}
	return n + 1
}
