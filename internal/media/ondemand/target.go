package ondemand

import "math"

const (
	// streamTarget is EXT-X-TARGETDURATION of what is cut from a stream of which nobody knows how long the next GOP is:
	// more than x264's usual 250 pictures at 24 a second. Only a picture that stands for longer makes a segment longer.
	streamTarget = 12
	// soundTarget is that of sound alone, whose last segment may be half as long again.
	soundTarget = 3
	// foresight is how many seconds are looked at to find that key frames come regularly, and several how many groups
	// of pictures.
	foresight, several = 30, 4
	// rounding is by how many seconds a segment may be longer than the target, which is compared with the nearest
	// integer.
	rounding = 0.45
)

// foresees reports whether enough has come to tell how long segments will be.
func (s *streamer) foresees(ended bool) bool {
	return ended || s.keys > 0 || s.video == nil || s.video.span() > foresight || s.video.bytes > held/4
}

// chooseTarget says how long segments will be at most: as long as key frames are apart if that is known, or if all of
// the file is at hand or they come regularly as far as it is. From then on they are not longer.
func (s *streamer) chooseTarget(ended bool) int {
	v := s.video
	switch {
	case v == nil || len(v.samples) == 0:
		return soundTarget
	case s.keys > 0:
		v.cutter.limit = v.at(float64(s.keys) + rounding)
		return s.keys
	}
	longest, regular := v.foreseen(ended)
	if !ended && !regular {
		return streamTarget
	}
	target := max(int(math.Round(longest)), 1)
	if target >= streamTarget {
		return streamTarget
	}
	v.cutter.limit = v.at(float64(target) + rounding)
	return target
}

// foreseen cuts what has come, without taking any of it: how many seconds the longest segment lasts, and whether key
// frames are equally far apart.
func (t *trackBuffer) foreseen(ended bool) (longest float64, regular bool) {
	t.decide(ended)
	last := t.samples[0].dts
	segment := func(until int64) {
		longest, last = max(longest, float64(until-last)/t.scale()), until
	}
	for _, i := range t.cuts {
		segment(t.samples[i].dts)
	}
	if ended {
		segment(t.end())
	}
	var keys []int64
	for _, x := range t.samples[:t.seen] {
		if x.idr {
			keys = append(keys, x.dts)
		}
	}
	return longest, t.equal(keys)
}

// equal reports whether times are equally far apart, but for a picture or so.
func (t *trackBuffer) equal(times []int64) bool {
	least, most := int64(math.MaxInt64), int64(0)
	for i := 1; i < len(times); i++ {
		d := times[i] - times[i-1]
		least, most = min(least, d), max(most, d)
	}
	return len(times) > several && most-least <= t.at(0.1)
}
