package hevc

import (
	library "github.com/bluenviron/mediacommon/v2/pkg/codecs/h265"

	"millrace/internal/media/codec/bits"
	"millrace/internal/media/codec/nal"
)

// Bounds that no real stream passes: level 6.2 allows pictures up to 8192 by 4320.
const (
	maxSPS       = 4096
	maxDimension = 16384
	maxFrameRate = 1000
)

// SPSInfo is what a sequence parameter set says about its stream.
type SPSInfo struct {
	Width, Height  int     // pixels after the conformance window
	FrameRate      float64 // pictures per second as announced, 0 when unknown
	ChromaFormat   int     // 0 monochrome, 1 4:2:0, 2 4:2:2, 3 4:4:4
	BitDepth       int     // luma, 8 to 16
	BitDepthChroma int
	ReorderFrames  int // pictures that may stand before one in decoding order and after it in output; -1 when not known
	Colour         Colour
	// PARWidth and PARHeight are the shape of a pixel; 1 and 1 when square or not given.
	PARWidth, PARHeight int
	// ProfileTierLevel is the general part of profile_tier_level, section 7.3.3: what hvcC and the codec's name repeat.
	ProfileTierLevel [12]byte

	temporalLayers  int
	temporalNesting bool
}

// Colour is the colour description of a stream, ITU-T H.273 numbers; 2 is "unspecified".
type Colour struct {
	Present                     bool // the SPS has a description
	Primaries, Transfer, Matrix uint8
	FullRange                   bool
}

// Info reads a sequence parameter set, a NAL unit without start code.
func Info(sps []byte) (SPSInfo, error) {
	if Type(sps) != TypeSPS || len(sps) < 16 || len(sps) > maxSPS {
		return SPSInfo{}, malformed("SPS of %d bytes", len(sps))
	}
	payload := nal.Unescape(sps[2:])
	if len(payload) < 13 {
		return SPSInfo{}, malformed("SPS of %d bytes", len(sps))
	}
	i := SPSInfo{PARWidth: 1, PARHeight: 1, ReorderFrames: -1}
	r := bits.NewReader(payload)
	r.Skip(4) // VPS id
	sub := r.Bits(3)
	i.temporalLayers, i.temporalNesting = sub+1, r.Flag()
	copy(i.ProfileTierLevel[:], payload[1:13])
	r.Skip(12 * 8)
	skipSubLayers(r, sub)
	r.Golomb() // SPS id
	i.ChromaFormat = r.Golomb()
	unitX, unitY := 1, 1 // section 6.2, table 6-1
	if i.ChromaFormat == 1 || i.ChromaFormat == 2 {
		unitX = 2
	}
	if i.ChromaFormat == 1 {
		unitY = 2
	}
	if i.ChromaFormat == 3 {
		r.Skip(1) // separate planes
	}
	i.Width, i.Height = r.Golomb(), r.Golomb()
	if r.Flag() {
		left, right, top, bottom := r.Golomb(), r.Golomb(), r.Golomb(), r.Golomb()
		i.Width -= unitX * (left + right)
		i.Height -= unitY * (top + bottom)
	}
	i.BitDepth, i.BitDepthChroma = 8+r.Golomb(), 8+r.Golomb()
	switch {
	case r.Short():
		return SPSInfo{}, malformed("the SPS ends too early")
	case i.ChromaFormat > 3 || i.BitDepth > 15 || i.BitDepthChroma > 15: // hvcC has 3 bits for them
		return SPSInfo{}, malformed("SPS: chroma format %d, bit depths %d and %d", i.ChromaFormat, i.BitDepth,
			i.BitDepthChroma)
	case i.Width <= 0 || i.Height <= 0 || i.Width > maxDimension || i.Height > maxDimension:
		return SPSInfo{}, malformed("SPS: picture of %d by %d pixels", i.Width, i.Height)
	}
	i.usability(sps)
	return i, nil
}

func skipSubLayers(r *bits.Reader, sub int) {
	var profile, level [8]bool
	for n := range sub {
		profile[n], level[n] = r.Flag(), r.Flag()
	}
	if sub > 0 {
		r.Skip(2 * (8 - sub))
	}
	for n := range sub {
		if profile[n] {
			r.Skip(88)
		}
		if level[n] {
			r.Skip(8)
		}
	}
}

// usability takes frame rate, colours and pixel shape from far behind in the SPS. A stream can do without them: what
// the library does not know of the syntax before is no error.
func (spsi *SPSInfo) usability(sps []byte) {
	defer func() { _ = recover() }()
	var s library.SPS
	if s.Unmarshal(sps) != nil {
		return
	}
	if n := s.MaxNumReorderPics; len(n) > 0 && n[len(n)-1] <= 16 {
		spsi.ReorderFrames = int(n[len(n)-1])
	}
	if s.VUI == nil {
		return
	}
	v := s.VUI
	if t := v.TimingInfo; t != nil && t.NumUnitsInTick > 0 && t.TimeScale > 0 {
		if rate := float64(t.TimeScale) / float64(t.NumUnitsInTick); rate <= maxFrameRate {
			spsi.FrameRate = rate
		}
	}
	spsi.Colour = Colour{Primaries: 2, Transfer: 2, Matrix: 2, FullRange: v.VideoFullRangeFlag}
	if v.ColourDescriptionPresentFlag {
		spsi.Colour = Colour{
			true, v.ColourPrimaries, v.TransferCharacteristics, v.MatrixCoefficients, v.VideoFullRangeFlag,
		}
	}
	if v.AspectRatioInfoPresentFlag {
		spsi.PARWidth, spsi.PARHeight = nal.Aspect(v.AspectRatioIdc, v.SarWidth, v.SarHeight)
	}
}
