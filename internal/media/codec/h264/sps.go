package h264

import (
	"fmt"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/h264"

	"millrace/internal/media/codec/nal"
)

// Bounds that no real stream passes: level 6.2 allows pictures up to 16384 by 16384 or so.
const (
	maxSPS       = 4096
	maxDimension = 16384
	maxFrameRate = 1000
)

// SPSInfo is what a sequence parameter set says about its stream.
type SPSInfo struct {
	Width, Height       int     // pixels after cropping
	PARWidth, PARHeight int     // shape of a pixel; 1 and 1 when square or not given
	FrameRate           float64 // pictures per second as announced, 0 when unknown
	ProfileIDC          uint8
	Constraints         uint8 // the byte of constraint_set flags
	LevelIDC            uint8 // ten times the level, 31 is 3.1
	ChromaFormat        int   // 0 monochrome, 1 4:2:0, 2 4:2:2, 3 4:4:4
	BitDepth            int   // luma, 8 to 14
	BitDepthChroma      int
	Interlaced          bool // pictures may be fields
	// pictures that may stand before one in decoding order and after it in output; -1 when not given
	ReorderFrames int
	Colour        Colour
}

// PixelFormat is ffmpeg's name for how the stream samples its pixels, such as yuv420p.
func (sps SPSInfo) PixelFormat() string {
	name := [...]string{"gray", "yuv420p", "yuv422p", "yuv444p"}[sps.ChromaFormat&3]
	if depth := max(sps.BitDepth, sps.BitDepthChroma); depth > 8 {
		name += fmt.Sprintf("%dle", depth)
	}
	return name
}

// Colour is the colour description of a stream, ITU-T H.273 numbers; 2 is "unspecified".
type Colour struct {
	Present                     bool // the SPS has a description
	Primaries, Transfer, Matrix uint8
	FullRange                   bool
}

// Info reads a sequence parameter set, a NAL unit without start code.
func Info(sps []byte) (info SPSInfo, err error) {
	if len(sps) < 4 || len(sps) > maxSPS {
		return SPSInfo{}, malformed("SPS of %d bytes", len(sps))
	}
	defer func() { // the parser is a library's: outside bytes must not take the process down
		if r := recover(); r != nil {
			info, err = SPSInfo{}, malformed("SPS: %v", r)
		}
	}()
	var s h264.SPS
	if err := s.Unmarshal(sps); err != nil {
		return SPSInfo{}, fmt.Errorf("%w: read SPS: %w", ErrMalformed, err)
	}
	if s.ChromaFormatIdc > 3 || s.BitDepthLumaMinus8 > 6 || s.BitDepthChromaMinus8 > 6 {
		return SPSInfo{}, malformed("SPS: chroma format %d, bit depths %d and %d", s.ChromaFormatIdc,
			s.BitDepthLumaMinus8+8, s.BitDepthChromaMinus8+8)
	}
	if s.PicWidthInMbsMinus1 >= maxDimension/16 || s.PicHeightInMapUnitsMinus1 >= maxDimension/16 {
		return SPSInfo{}, malformed("SPS: %d by %d macroblocks", s.PicWidthInMbsMinus1+1, s.PicHeightInMapUnitsMinus1+1)
	}
	info = SPSInfo{
		PARWidth:       1,
		PARHeight:      1,
		ProfileIDC:     sps[1],
		Constraints:    sps[2],
		LevelIDC:       sps[3],
		ChromaFormat:   int(s.ChromaFormatIdc),
		BitDepth:       int(s.BitDepthLumaMinus8) + 8,
		BitDepthChroma: int(s.BitDepthChromaMinus8) + 8,
		Interlaced:     !s.FrameMbsOnlyFlag,
		ReorderFrames:  -1,
	}
	if err := info.size(&s); err != nil {
		return SPSInfo{}, err
	}
	if s.VUI != nil {
		info.vui(s.VUI)
	}
	if p := info.ProfileIDC; info.ReorderFrames < 0 && (p == 66 || s.PicOrderCntType == 2) {
		info.ReorderFrames = 0 // Baseline has no B slices; type 2 means output order is decoding order
	}
	return info, nil
}

func (sps *SPSInfo) size(s *h264.SPS) error {
	w := (int64(s.PicWidthInMbsMinus1) + 1) * 16
	h := (int64(s.PicHeightInMapUnitsMinus1) + 1) * 16
	unitX, unitY := int64(1), int64(1) // section 7.4.2.1.1, equations 7-19 to 7-22
	if !s.SeparateColourPlaneFlag {
		if s.ChromaFormatIdc == 1 || s.ChromaFormatIdc == 2 {
			unitX = 2
		}
		if s.ChromaFormatIdc == 1 {
			unitY = 2
		}
	}
	if sps.Interlaced {
		h, unitY = h*2, unitY*2
	}
	if c := s.FrameCropping; c != nil {
		w -= unitX * (int64(c.LeftOffset) + int64(c.RightOffset))
		h -= unitY * (int64(c.TopOffset) + int64(c.BottomOffset))
	}
	if w <= 0 || h <= 0 || w > maxDimension || h > maxDimension {
		return malformed("SPS: picture of %d by %d pixels", w, h)
	}
	sps.Width, sps.Height = int(w), int(h)
	return nil
}

func (sps *SPSInfo) vui(v *h264.SPS_VUI) {
	if v.AspectRatioInfoPresentFlag {
		sps.PARWidth, sps.PARHeight = nal.Aspect(v.AspectRatioIdc, v.SarWidth, v.SarHeight)
	}
	if t := v.TimingInfo; t != nil && t.NumUnitsInTick > 0 && t.TimeScale > 0 {
		if r := float64(t.TimeScale) / 2 / float64(t.NumUnitsInTick); r <= maxFrameRate {
			sps.FrameRate = r
		}
	}
	if r := v.BitstreamRestriction; r != nil && r.MaxNumReorderFrames <= 16 {
		sps.ReorderFrames = int(r.MaxNumReorderFrames)
	}
	sps.Colour = Colour{Primaries: 2, Transfer: 2, Matrix: 2, FullRange: v.VideoFullRangeFlag}
	if v.ColourDescriptionPresentFlag {
		sps.Colour.Present = true
		sps.Colour.Primaries, sps.Colour.Transfer, sps.Colour.Matrix = v.ColourPrimaries, v.TransferCharacteristics,
			v.MatrixCoefficients
	}
}
