package h264

import (
	"errors"
	"fmt"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"

	"millrace/internal/media/codec/bits"
	"millrace/internal/media/codec/nal"
)

// ErrUnsupported means that a stream uses what Slices does not read: fields, slice groups, separate colour planes or
// pictures too large.
var ErrUnsupported = errors.New("unsupported kind of slices")

// maxMacroblocks is MaxFS of level 6.2, table A-1.
const maxMacroblocks = 139264

// Slices reads the headers of a stream's slices, ITU-T H.264 section 7.3.3, and writes pictures that repeat others.
// Only streams of frames are read, with one pair of parameter sets. One goroutine uses it.
type Slices struct {
	macroblocks  int // of a picture
	references   int // that are kept at most
	frameNumBits int
	gaps         bool // numbers may be missing though no picture is
	pocType      int
	pocBits      int
	noDelta      bool // type 1: order counts have no deltas
	monochrome   bool

	pps       int // its ID
	cabac     bool
	bottom    bool // the order count of the bottom field is given
	active    [2]int
	weighted  bool
	bipred    int
	qp        int
	deblock   bool // slices say how to deblock
	redundant bool

	dataP, dataB []byte // of slices whose macroblocks are all skipped, once they were needed
}

// Slice is the header of a slice.
type Slice struct {
	First     bool // of its picture
	Intra     bool // refers to no picture
	B         bool
	IDR       bool
	Reference bool // others may refer to its picture
	FrameNum  int  // modulo Slices.FrameNums
	Adaptive  bool // says which references remain, adaptive_ref_pic_marking_mode_flag
	// from the next picture on numbers and order are counted from here on, memory_management_control_operation 5
	Restarts bool

	refIDC     byte
	order      int         // pic_order_cnt_lsb
	deltas     [2]int      // of the order count
	operations []operation // of dec_ref_pic_marking
	// where that begins and ends: bits behind the unit's first byte, without emulation prevention
	marking [2]int
}

// NewSlices reads the parameter sets. Errors: ErrMalformed, ErrUnsupported.
func NewSlices(sps, pps []byte) (x *Slices, err error) {
	if _, err = Info(sps); err != nil {
		return nil, err
	}
	defer func() { // the parser is a library's: outside bytes must not take the process down
		if r := recover(); r != nil {
			x, err = nil, malformed("SPS: %v", r)
		}
	}()
	var s h264.SPS
	if err = s.Unmarshal(sps); err != nil {
		return nil, fmt.Errorf("%w: read SPS: %w", ErrMalformed, err)
	}
	if !s.FrameMbsOnlyFlag || s.SeparateColourPlaneFlag {
		return nil, fmt.Errorf("%w: fields or separate colour planes", ErrUnsupported)
	}
	if s.Log2MaxFrameNumMinus4 > 12 || s.Log2MaxPicOrderCntLsbMinus4 > 12 || s.PicOrderCntType > 2 ||
		s.MaxNumRefFrames > 16 {
		return nil, malformed("SPS: counts of pictures out of range")
	}
	macroblocks := int(s.PicWidthInMbsMinus1+1) * int(s.PicHeightInMapUnitsMinus1+1) // Info bounds both
	if macroblocks > maxMacroblocks {
		return nil, fmt.Errorf("%w: pictures of %d macroblocks", ErrUnsupported, macroblocks)
	}
	x = &Slices{
		macroblocks:  macroblocks,
		references:   int(s.MaxNumRefFrames),
		frameNumBits: int(s.Log2MaxFrameNumMinus4) + 4,
		gaps:         s.GapsInFrameNumValueAllowedFlag,
		pocType:      int(s.PicOrderCntType),
		pocBits:      int(s.Log2MaxPicOrderCntLsbMinus4) + 4,
		noDelta:      s.DeltaPicOrderAlwaysZeroFlag,
		monochrome:   s.ChromaFormatIdc == 0 && hasChromaFormat(s.ProfileIdc),
	}
	return x, x.readPPS(pps)
}

// hasChromaFormat reports whether an SPS of a profile says its chroma format; it is 4:2:0 where it does not, section
// 7.3.2.1.1.
func hasChromaFormat(profile uint8) bool {
	switch profile {
	case 100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135:
		return true
	}
	return false
}

func (s *Slices) readPPS(pps []byte) error {
	if len(pps) > maxSPS || Type(pps) != TypePPS {
		return malformed("PPS of %d bytes", len(pps))
	}
	r := bits.NewReader(nal.Unescape(pps[1:]))
	s.pps = r.Golomb()
	r.Golomb() // seq_parameter_set_id
	s.cabac, s.bottom = r.Flag(), r.Flag()
	if r.Golomb() != 0 {
		return fmt.Errorf("%w: slice groups", ErrUnsupported)
	}
	s.active = [2]int{r.Golomb() + 1, r.Golomb() + 1}
	s.weighted, s.bipred = r.Flag(), r.Bits(2)
	s.qp = 26 + r.Signed()
	r.Signed() // pic_init_qs_minus26
	r.Signed() // chroma_qp_index_offset
	s.deblock = r.Flag()
	r.Flag() // constrained_intra_pred_flag
	s.redundant = r.Flag()
	if r.Short() {
		return malformed("PPS of %d bytes", len(pps))
	}
	return nil
}

// FrameNums is how many numbers reference pictures have, one after the other.
func (s *Slices) FrameNums() int { return 1 << s.frameNumBits }

// Gaps reports whether numbers may be missing though no picture was lost, gaps_in_frame_num_value_allowed_flag.
func (s *Slices) Gaps() bool { return s.gaps }

// Bounds of a slice header: what is longer, or refers to more, is none that is read here.
const (
	maxSliceType   = 9 // table 7-6
	maxSliceHeader = 512
	maxOperations  = 66
	maxActive      = 32
)

// Read reads the header of a slice; of the unit there need be no more than that. Errors: ErrMalformed, ErrUnsupported.
func (s *Slices) Read(unit []byte) (h Slice, err error) {
	t := Type(unit)
	if t != TypeNonIDR && t != TypeIDR {
		return h, fmt.Errorf("%w: a NAL unit of type %d", ErrUnsupported, t)
	}
	r := bits.NewReader(nal.Unescape(unit[1:min(len(unit), maxSliceHeader)]))
	h.refIDC, h.IDR = unit[0]>>5&3, t == TypeIDR
	h.Reference = h.refIDC != 0
	first, kind := r.Golomb(), r.Golomb() // first_mb_in_slice, slice_type
	if first >= s.macroblocks || kind > maxSliceType {
		return h, malformed("slice of type %d from macroblock %d of %d on", kind, first, s.macroblocks)
	}
	h.First = first == 0
	kind %= 5 // table 7-6: P, B, I, SP, SI
	if kind > 2 {
		return h, fmt.Errorf("%w: a switching slice", ErrUnsupported)
	}
	h.B, h.Intra = kind == 1, kind == 2
	if pps := r.Golomb(); pps != s.pps {
		return h, fmt.Errorf("%w: picture parameter set %d", ErrUnsupported, pps)
	}
	h.FrameNum = r.Bits(s.frameNumBits)
	if h.IDR {
		r.Golomb() // idr_pic_id
	}
	s.readOrder(r, &h)
	if s.redundant {
		r.Golomb()
	}
	if h.B {
		r.Flag() // direct_spatial_mv_pred_flag
	}
	if err = s.readLists(r, &h); err != nil {
		return h, err
	}
	if h.Reference {
		h.marking[0] = r.Pos()
		readMarking(r, &h)
		h.marking[1] = r.Pos()
	}
	if r.Short() {
		return h, malformed("slice header of %d bytes", len(unit))
	}
	return h, nil
}

func (s *Slices) readOrder(r *bits.Reader, h *Slice) {
	switch {
	case s.pocType == 0:
		h.order = r.Bits(s.pocBits)
		if s.bottom {
			h.deltas[1] = r.Signed()
		}
	case s.pocType == 1 && !s.noDelta:
		h.deltas[0] = r.Signed()
		if s.bottom {
			h.deltas[1] = r.Signed()
		}
	}
}

// readLists passes over what is said of the lists of references, sections 7.3.3.1 and 7.3.3.2.
func (s *Slices) readLists(r *bits.Reader, h *Slice) error {
	if h.Intra {
		return nil
	}
	active, lists := s.active, 1
	if h.B {
		lists = 2
	}
	override := r.Flag() // num_ref_idx_active_override_flag
	for i := range active[:lists] {
		if override {
			active[i] = r.Golomb() + 1
		}
	}
	for _, n := range active[:lists] {
		if n > maxActive {
			return malformed("slice of %d references", n)
		}
		if !r.Flag() {
			continue
		}
		for n := 0; r.Golomb() != 3; n++ { // modification_of_pic_nums_idc
			if r.Golomb(); n > maxOperations || r.Short() {
				return malformed("slice header has no end")
			}
		}
	}
	if s.weighted && !h.B || s.bipred == 1 && h.B {
		s.readWeights(r, active[:lists])
	}
	return nil
}

func (s *Slices) readWeights(r *bits.Reader, active []int) {
	r.Golomb()
	if !s.monochrome {
		r.Golomb()
	}
	for _, n := range active {
		for range n {
			if r.Flag() {
				r.Signed()
				r.Signed()
			}
			if !s.monochrome && r.Flag() {
				for range 4 {
					r.Signed()
				}
			}
		}
	}
}
