// Package ladder decides in which renditions a source is offered: their sizes, bit rates and H.264 levels. It is pure:
// the same source and settings always give the same rungs, so that all nodes list and encode the same without asking
// each other.
package ladder

import (
	"fmt"
	"math"
	"slices"

	"millrace/internal/media/frame"
)

// Quality is what `video_quality` asks for.
type Quality string

// The qualities.
const (
	Basic   Quality = "basic"
	Plus    Quality = "plus"
	Premium Quality = "premium"
)

// Source is the picture that the rungs are made of, as it is presented: with square pixels and upright.
type Source struct {
	Width, Height int              // pixels
	FrameRate     float64          // frames per second; 0: unknown
	Range         frame.VideoRange // of high dynamic range it is offered as it is, and tone-mapped in all rungs
	Foreign       bool             // its codec is none that every player plays: Live offers a rung of its own size too
}

// Short is the shorter side of the picture, in pixels: what "1080p" means for upright pictures too.
func (s Source) Short() int { return min(s.Width, s.Height) }

// Rung is one rendition.
type Rung struct {
	Name          string // such as 720p: what it is called in URLs and storage keys
	Width, Height int    // pixels, both even
	Bitrate       int    // the most it may take over a second, bits per second: part of what the rendition is
	Bound         int    // less than that, where its source takes little; 0: not bounded
	CRF           int    // x264's constant rate factor: what it aims at below that
	Preset        string // of x264
	Level         int    // level_idc, ITU-T H.264 table A-1: 31 is 3.1
	FrameRate     float64
	// Range is that of the source that it was first made of. The rung itself is SDR.
	Range frame.VideoRange
	// NoReorder: no picture refers to one that is shown later, so that it can be made while it is live.
	NoReorder bool
}

// Rate is the most that it takes over a second, in bits per second.
func (r Rung) Rate() int {
	if r.Bound > 0 {
		return min(r.Bitrate, r.Bound)
	}
	return r.Bitrate
}

// Peak is the most that one of its segments takes, in bits per second, when they are so many seconds long. Each run of
// the encoder begins with half a second's worth to spare, each of two parts side by side with a third, which weighs the
// more the shorter segments are; the boxes around frames come on top.
func (r Rung) Peak(segment float64) float64 {
	const spare = 0.75
	return r.Average() + float64(r.Rate())*spare/max(segment, 1)
}

// Average is the most that it takes on average over many segments, in bits per second: that of a picture which is hard
// to encode all the time. What it really takes is known when all of it has been encoded, which few of them ever are.
func (r Rung) Average() float64 {
	const boxes = 20 * 8 // around a frame, in bits
	return float64(r.Rate()) + boxes*max(r.FrameRate, 30)
}

// Codec is the rung's RFC 6381 name: High profile, no constraints.
func (r Rung) Codec() string { return fmt.Sprintf("avc1.6400%02x", r.Level) }

// step is a height that rungs may have.
type step struct {
	short   int // pixels of the shorter side
	bitrate int // bits per second at 30 frames a second in plus quality
	basic   bool
	plus    bool
}

// steps are all there are, ascending. Premium has every one.
//
//nolint:gochecknoglobals // a table
var steps = []step{
	{270, 400_000, true, true},
	{360, 800_000, false, false},
	{480, 1_300_000, true, true},
	{540, 1_800_000, false, false},
	{720, 2_800_000, true, true},
	{1080, 5_500_000, true, true},
	{1440, 10_000_000, false, true},
	{2160, 18_000_000, true, true},
}

// Tier returns the shorter side that `max_resolution_tier` allows, in pixels; 1080 when nothing was asked for.
func Tier(maxResolution string) int {
	switch maxResolution {
	case "2160p":
		return 2160
	case "1440p":
		return 1440
	}
	return 1080
}

// tolerance is by how much a picture may be larger than its tier and still belong to it: 1920x1088 is 1080p.
const tolerance = 1.02

// Within reports whether a picture need not be made smaller for a tier.
func (s Source) Within(tier int) bool { return float64(s.Short()) <= float64(tier)*tolerance }

// near is how close below its source a rung must not be: it would cost a lot and spare little.
const near = 0.85

// Below returns the rungs beneath a source that is offered as it is, largest first. The source is never scaled up.
func Below(s Source, q Quality, tier int) []Rung {
	var rungs []Rung
	for _, st := range slices.Backward(steps[:]) {
		if st.in(q) && st.short <= tier && float64(st.short) <= near*float64(s.Short()) {
			rungs = append(rungs, s.rung(st, q))
		}
	}
	return rungs
}

// At is the rung whose shorter side has short pixels, which is one of the steps; where the source has fewer, it is the
// source's own size.
func At(s Source, q Quality, short int) Rung {
	for _, st := range steps {
		if st.short == short && short < s.Short() {
			return s.rung(st, q)
		}
	}
	return s.rung(s.own(), q)
}

// Instead returns the rungs of a source that is not offered as it is, largest first: one of its own size, or of the
// tier's where that is smaller, and those beneath.
func Instead(s Source, q Quality, tier int) []Rung {
	if s.Within(tier) {
		return append([]Rung{s.rung(s.own(), q)}, Below(s, q, tier)...)
	}
	return Below(s, q, tier)
}

// mostLive is how many rungs a broadcast has: more than there are steps, and few enough for a publisher who makes up
// sizes.
const mostLive = 12

// Live returns the rungs of a broadcast, whose picture may change: those of every source that it has had, in that
// order, largest first. What was offered once stays: of two rungs with the same name the first one counts, and once
// there are mostLive none is added.
func Live(sources []Source, q Quality, tier int) []Rung {
	var rungs []Rung
	for _, s := range sources {
		if s.Short() == 0 {
			continue
		}
		below := Instead(s, q, tier)
		if !s.Foreign && s.Within(tier) {
			below = Below(s, q, tier)
		}
		for _, r := range below {
			if r.NoReorder = true; len(rungs) < mostLive &&
				!slices.ContainsFunc(rungs, func(o Rung) bool { return o.Name == r.Name }) {
				rungs = append(rungs, r)
			}
		}
	}
	slices.SortStableFunc(rungs, func(a, b Rung) int { return b.Width*b.Height - a.Width*a.Height })
	return rungs
}

func (st step) in(q Quality) bool {
	switch q {
	case Basic:
		return st.basic
	case Premium:
		return true
	case Plus:
	}
	return st.plus
}

// own is the step that a source of any size makes for itself: its bit rate lies between those of its neighbours, by
// pixels.
func (s Source) own() step {
	short := s.Short()
	for _, st := range steps {
		if short <= st.short {
			part := float64(short*short) / float64(st.short*st.short)
			return step{short: short, bitrate: max(int(float64(st.bitrate)*math.Pow(part, 0.75)), 150_000)}
		}
	}
	return step{short: short, bitrate: steps[len(steps)-1].bitrate}
}

func (s Source) rung(st step, q Quality) Rung {
	r := Rung{Name: fmt.Sprintf("%dp", st.short), FrameRate: s.FrameRate, Range: s.Range, CRF: 23, Preset: "veryfast"}
	r.Width, r.Height = s.scaled(st.short)
	rate := float64(st.bitrate) * math.Sqrt(float64(r.Width*r.Height)/float64(st.short*st.short)/(16.0/9))
	if s.FrameRate > 35 {
		rate *= 1.4
	}
	switch q {
	case Basic:
		rate, r.CRF = rate*0.8, 25
	case Premium:
		rate, r.CRF, r.Preset = rate*1.3, 21, "faster"
	case Plus:
	}
	r.Bitrate = int(rate/1000) * 1000
	r.Level = level(r)
	return r
}

// scaled is the source's size with the given shorter side, in whole pairs of pixels as 4:2:0 sampling wants,
// and not larger.
func (s Source) scaled(short int) (width, height int) {
	factor := float64(short) / float64(s.Short())
	even := func(side int) int { return max(min(int(math.Round(float64(side)*factor/2))*2, side&^1), 2) }
	return even(s.Width), even(s.Height)
}

// limits are the rows of ITU-T H.264 table A-1 that matter: macroblocks a second, macroblocks of a picture, bit rate in
// units of 1250 bits per second (High profile).
//
//nolint:gochecknoglobals // a table
var limits = []struct{ level, perSecond, perPicture, rate int }{
	{21, 19_800, 792, 4_000},
	{30, 40_500, 1_620, 10_000},
	{31, 108_000, 3_600, 14_000},
	{32, 216_000, 5_120, 20_000},
	{40, 245_760, 8_192, 20_000},
	{42, 522_240, 8_704, 50_000},
	{50, 589_824, 22_080, 135_000},
	{51, 983_040, 36_864, 240_000},
	{52, 2_073_600, 36_864, 240_000},
}

func level(r Rung) int {
	blocks := ((r.Width + 15) / 16) * ((r.Height + 15) / 16)
	fps := r.FrameRate
	if fps <= 0 {
		fps = 60
	}
	for _, l := range limits {
		if blocks <= l.perPicture && float64(blocks)*fps <= float64(l.perSecond) && r.Bitrate <= l.rate*1250 {
			return l.level
		}
	}
	return 62
}

// foreign is how much more H.264 may take than a source of a newer codec.
const foreign = 2

// leastRate is what a rung takes at least that is of use, in bits per second.
const leastRate = 120_000

// Bound bounds rungs, largest first, by what their source takes in its fastest stretch, in bits per second, when
// segments are so many seconds long: each one takes less than the source, and than the one above it. A rung stays the
// same rendition for it. peak 0: unknown.
func Bound(rungs []Rung, s Source, peak, segment float64) []Rung {
	if peak <= 0 {
		return rungs
	}
	rungs = slices.Clone(rungs)
	limit := near * peak
	if s.Foreign {
		limit = foreign * peak
	}
	for i := range rungs {
		r := &rungs[i]
		for r.Peak(segment) > limit && r.Rate() > lowestBound {
			r.Bound = r.Rate() * 7 / 10 // in steps: an encoder of what is live begins again with each
		}
		limit = min(limit, near*r.Peak(segment))
	}
	return rungs
}

// lowestBound ends the search.
const lowestBound = 10_000

// Useful reports whether a bounded rung spares viewers something that they could be short of.
func (r Rung) Useful() bool { return r.Bound == 0 || r.Bound >= leastRate }
