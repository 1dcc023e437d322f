package h264

import (
	"slices"

	"millrace/internal/media/codec/bits"
	"millrace/internal/media/codec/nal"
)

// Repeat writes a picture in the place of the one that a slice header is of, in which every macroblock is skipped: it
// shows the reference that was decoded last or, of B slices, the mean of the nearest two. It does to the references
// what that picture did, so that those behind it find what they refer to. Of an IDR there is none.
func (s *Slices) Repeat(h Slice) ([]byte, error) {
	if h.IDR || s.references == 0 {
		return nil, ErrUnsupported
	}
	return s.skipped(h), nil
}

// Missing writes n pictures for as many references of which nothing is known but that they were lost before the picture
// that a slice header is of. Those before a B picture come after it in output order, others before it. ErrUnsupported:
// there is no room for them in that order, or they are more than are kept.
func (s *Slices) Missing(h Slice, n int) (units [][]byte, err error) {
	if s.references == 0 || n > s.references || h.IDR || s.pocType == 1 || s.pocType == 2 && h.B {
		return nil, ErrUnsupported
	}
	if s.pocType == 0 && (h.order&1 != 0 || s.bottom) {
		return nil, ErrUnsupported // frames have even numbers in all but odd streams: those between are free
	}
	nums, orders := s.FrameNums(), 1<<s.pocBits
	for i := range n {
		m := Slice{Reference: true, refIDC: 1, FrameNum: (h.FrameNum - n + i + nums) % nums}
		away := 2*(n-i) - 1
		if !h.B {
			away = -away
		}
		m.order = (h.order + away + orders) % orders
		units = append(units, s.skipped(m))
	}
	return units, nil
}

// worstQP is the quantiser for which CABAC's first guess is nearest to what is written.
const worstQP = 51

func (s *Slices) skipped(h Slice) []byte {
	var w bits.Writer
	w.Golomb(0) // first_mb_in_slice
	kind := 5   // table 7-6: all slices of the picture are P
	if h.B {
		kind = 6
	}
	w.Golomb(kind)
	w.Golomb(s.pps)
	w.Bits(h.FrameNum, s.frameNumBits)
	switch {
	case s.pocType == 0:
		w.Bits(h.order, s.pocBits)
		if s.bottom {
			w.Signed(h.deltas[1])
		}
	case s.pocType == 1 && !s.noDelta:
		w.Signed(h.deltas[0])
		if s.bottom {
			w.Signed(h.deltas[1])
		}
	}
	if s.redundant {
		w.Golomb(0)
	}
	s.writeLists(&w, h.B)
	if h.Reference {
		writeMarking(&w, h)
	}
	if s.cabac {
		w.Golomb(0) // cabac_init_idc
	}
	w.Signed(worstQP - s.qp)
	if s.deblock {
		w.Golomb(1) // disable_deblocking_filter_idc
	}
	if s.cabac {
		w.Fill()
		w.Append(s.skips(h.B))
	} else {
		w.Golomb(s.macroblocks) // mb_skip_run
		w.Trail()
	}
	return slices.Concat([]byte{h.refIDC<<5 | TypeNonIDR}, nal.Escape(w.Bytes()))
}

// writeLists says that one reference of each list is used, as it comes, with no weight.
func (s *Slices) writeLists(w *bits.Writer, b bool) {
	lists := 1
	if b {
		lists = 2
		w.Flag(true) // direct_spatial_mv_pred_flag
	}
	w.Flag(true) // num_ref_idx_active_override_flag
	for range lists {
		w.Golomb(0)
	}
	for range lists {
		w.Flag(false) // ref_pic_list_modification_flag
	}
	if s.weighted && !b || s.bipred == 1 && b {
		w.Golomb(0)
		if !s.monochrome {
			w.Golomb(0)
		}
		for range lists {
			w.Flag(false)
			if !s.monochrome {
				w.Flag(false)
			}
		}
	}
}

// skips is the data of a slice whose macroblocks are all skipped. It is the same for every picture, and made once: a
// large picture's takes a millisecond.
func (s *Slices) skips(b bool) []byte {
	made := &s.dataP
	if b {
		made = &s.dataB
	}
	if *made == nil {
		var w bits.Writer
		writeSkips(&w, b, s.macroblocks)
		*made = w.Bytes()
	}
	return *made
}

// writeSkips writes the data of a slice whose macroblocks are all skipped, section 7.3.4, by CABAC, section 9.3.4. The
// context of mb_skip_flag is always the same one where all neighbours are skipped, and its state only goes up.
func writeSkips(w *bits.Writer, b bool, macroblocks int) {
	// Tables 9-13 and 9-14 for ctxIdx 11 and 24 with cabac_init_idc 0, equation 9-5.
	m, n := 23, 33
	if b {
		m, n = 18, 64
	}
	state := (m*worstQP)>>4 + n - 64
	e := cabac{w: w, width: 510, first: true}
	for i := range macroblocks {
		lps := leastRange[state-firstState][e.width>>6&3]
		e.width -= lps
		state = min(state+1, lastState)
		e.renormalise()
		e.width -= 2 // end_of_slice_flag
		if i == macroblocks-1 {
			e.end()
			return
		}
		e.renormalise()
	}
}

// States that a skip flag's context passes through.
const (
	firstState = 42
	lastState  = 62
)

// leastRange is the part of table 9-44 that is needed, rangeTabLPS.
var leastRange = [lastState - firstState + 1][4]int{ //nolint:gochecknoglobals // a constant
	{16, 20, 23, 27},
	{15, 19, 22, 25},
	{14, 18, 21, 24},
	{14, 17, 20, 23},
	{13, 16, 19, 22},
	{12, 15, 18, 21},
	{12, 14, 17, 20},
	{11, 14, 16, 19},
	{11, 13, 15, 18},
	{10, 12, 15, 17},
	{10, 12, 14, 16},
	{9, 11, 13, 15},
	{9, 11, 12, 14},
	{8, 10, 12, 14},
	{8, 9, 11, 13},
	{7, 9, 11, 12},
	{7, 9, 10, 12},
	{7, 8, 10, 11},
	{6, 8, 9, 11},
	{6, 7, 9, 10},
	{6, 7, 8, 9},
}

// cabac is the arithmetic encoder of section 9.3.4.
type cabac struct {
	w           *bits.Writer
	low, width  int
	outstanding int
	first       bool
}

func (c *cabac) renormalise() {
	for c.width < 256 {
		switch {
		case c.low < 256:
			c.put(0)
		case c.low >= 512:
			c.low -= 512
			c.put(1)
		default:
			c.low -= 256
			c.outstanding++
		}
		c.width <<= 1
		c.low <<= 1
	}
}

func (c *cabac) put(bit int) {
	if !c.first {
		c.w.Bits(bit, 1)
	}
	c.first = false
	for ; c.outstanding > 0; c.outstanding-- {
		c.w.Bits(1-bit, 1)
	}
}

// end writes that the slice ends; its last bit is the stop bit.
func (c *cabac) end() {
	c.low += c.width
	c.width = 2
	c.renormalise()
	c.put(c.low >> 9 & 1)
	c.w.Bits(c.low>>7&3|1, 2)
}
