package av1

import "millrace/internal/media/codec/bits"

// HeaderInfo is what a sequence header says about its stream.
type HeaderInfo struct {
	Width, Height              int     // the largest picture, pixels
	FrameRate                  float64 // pictures per second when they are equally far apart; 0 when unknown
	Profile, Level             uint8   // seq_profile; seq_level_idx of the first operating point
	HighTier, Monochrome       bool
	BitDepth                   int
	SubsamplingX, SubsamplingY bool
	ChromaPosition             uint8
	Colour                     Colour
}

// Colour is the colour description of a stream, ITU-T H.273 numbers; 2 is "unspecified".
type Colour struct {
	Present                     bool
	Primaries, Transfer, Matrix uint8
	FullRange                   bool
}

const maxHeader = 1024

// Info reads a sequence header, an OBU with its size field, AV1 section 5.5.
func Info(header []byte) (HeaderInfo, error) {
	o, rest, ok := next(header)
	if !ok || len(rest) > 0 || o.kind != TypeSequenceHeader || !o.sized || len(header) > maxHeader {
		return HeaderInfo{}, malformed("no sequence header in %d bytes", len(header))
	}
	r := bits.NewReader(o.payload)
	h := HeaderInfo{Profile: uint8(r.Bits(3))}
	r.Skip(1)
	reduced := r.Flag()
	if reduced {
		h.Level = uint8(r.Bits(5))
	} else {
		h.operatingPoints(r)
	}
	widthBits, heightBits := r.Bits(4)+1, r.Bits(4)+1
	h.Width, h.Height = r.Bits(widthBits)+1, r.Bits(heightBits)+1
	if !reduced && r.Flag() { // frame ids
		r.Skip(4 + 3)
	}
	skipTools(r, reduced)
	h.colour(r)
	switch {
	case r.Short():
		return HeaderInfo{}, malformed("the sequence header ends too early")
	case h.Profile > 2:
		return HeaderInfo{}, malformed("profile %d", h.Profile)
	}
	return h, nil
}

// operatingPoints reads timing, decoder model and operating points.
func (h *HeaderInfo) operatingPoints(r *bits.Reader) {
	model, delayBits := false, 0
	if r.Flag() { // timing_info
		h.timing(r)
		if model = r.Flag(); model {
			delayBits = r.Bits(5) + 1
			r.Skip(32 + 5 + 5)
		}
	}
	delay := r.Flag()
	for n := range r.Bits(5) + 1 {
		r.Skip(12)
		level, tier := r.Bits(5), false
		if level > 7 {
			tier = r.Flag()
		}
		if n == 0 {
			h.Level, h.HighTier = uint8(level), tier
		}
		if model && r.Flag() {
			r.Skip(2*delayBits + 1)
		}
		if delay && r.Flag() {
			r.Skip(4)
		}
	}
}

// timing reads timing_info: a rate that means something is kept.
func (h *HeaderInfo) timing(r *bits.Reader) {
	tick, scale := r.Bits(32), r.Bits(32)
	if !r.Flag() {
		return
	}
	ticks := r.Golomb() + 1
	if rate := float64(scale) / float64(tick) / float64(ticks); tick > 0 && rate <= 1000 {
		h.FrameRate = rate
	}
}

// skipTools passes over the coding tools, between the size and the colours.
func skipTools(r *bits.Reader, reduced bool) {
	r.Skip(3)
	if !reduced {
		r.Skip(4)
		hint := r.Flag()
		if hint {
			r.Skip(2)
		}
		content := 2
		if !r.Flag() {
			content = r.Bits(1)
		}
		if content > 0 && !r.Flag() {
			r.Skip(1)
		}
		if hint {
			r.Skip(3)
		}
	}
	r.Skip(3)
}

// colour reads color_config, section 5.5.2.
func (h *HeaderInfo) colour(r *bits.Reader) {
	const bt709, srgb, identity = 1, 13, 0
	h.BitDepth = 8
	if r.Flag() {
		h.BitDepth = 10
		if h.Profile == 2 && r.Flag() {
			h.BitDepth = 12
		}
	}
	h.Monochrome = h.Profile != 1 && r.Flag()
	c := Colour{Primaries: 2, Transfer: 2, Matrix: 2}
	if c.Present = r.Flag(); c.Present {
		c.Primaries, c.Transfer, c.Matrix = uint8(r.Bits(8)), uint8(r.Bits(8)), uint8(r.Bits(8))
	}
	switch {
	case h.Monochrome:
		c.FullRange = r.Flag()
		h.SubsamplingX, h.SubsamplingY = true, true
	case c.Primaries == bt709 && c.Transfer == srgb && c.Matrix == identity:
		c.FullRange = true
	default:
		c.FullRange = r.Flag()
		switch {
		case h.Profile == 0:
			h.SubsamplingX, h.SubsamplingY = true, true
		case h.Profile == 2 && h.BitDepth == 12:
			h.SubsamplingX = r.Flag()
			h.SubsamplingY = h.SubsamplingX && r.Flag()
		case h.Profile == 2:
			h.SubsamplingX = true
		}
		if h.SubsamplingX && h.SubsamplingY {
			h.ChromaPosition = uint8(r.Bits(2))
		}
	}
	h.Colour = c
}
