package cmaf

// Start moves decode times where other media begins, behind a discontinuity: the first picture is decoded when it is
// presented, and those behind it follow closely until they have caught up with the times that they had. Players place
// what follows a discontinuity by the first tfdt (hls.js 1.7.4, passthrough-remuxer.ts): where pictures are decoded
// earlier than they are presented (B-frames), all of it, its sound too, would be late by that. Presentation times stay,
// and no composition offset becomes negative: ffmpeg (mov.c, dts_shift) takes the smallest of those for a delay of the
// picture behind the sound.
//
// The zero value moves nothing. Times are ticks.
type Start struct{ from, shown, until int64 }

// StartAt is for a first picture that is decoded at a time, presented so much later, and then for so long.
func StartAt(at, later, long int64) Start {
	if later <= 0 || long < 2 {
		return Start{}
	}
	// half of that: the next picture may come a little early
	return Start{from: at, shown: at + later, until: at + later + long/2}
}

// Long is for how long decode times are moved.
func (s Start) Long() int64 { return s.until - s.from }

// At is where a decode time is moved to. It never goes backwards.
func (s Start) At(at int64) int64 {
	if at < s.from || at >= s.until {
		return at
	}
	return s.shown + (at-s.from)*(s.until-s.shown)/(s.until-s.from)
}

// Move moves samples the first of which is decoded at a time, and returns when it is decoded then. Their composition
// offsets are those of moved samples already; see Offset.
func (s Start) Move(at int64, samples []Sample) int64 {
	first := s.At(at)
	for i := range samples {
		end := at + int64(samples[i].Duration)
		samples[i].Duration = uint32(s.At(end) - s.At(at))
		at = end
	}
	return first
}

// Offset is the composition offset of a sample that is decoded at a time and had another one.
func (s Start) Offset(at int64, offset int32) int32 {
	if by := s.At(at) - at; by > 0 {
		return max(offset-int32(min(by, int64(offset))), 0)
	}
	return offset
}
