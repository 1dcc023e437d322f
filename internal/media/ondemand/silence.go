package ondemand

import (
	"math"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/timeline"
)

const (
	// fastestSound is the highest sample rate, in Hz, whose holes are filled: what a hostile file makes of each second
	// is bounded.
	fastestSound = 96_000
	// longestFill is the longest segment, in seconds, that is filled.
	longestFill = 120
)

// silence fills the holes of a track of AAC: packets that decode to silence, as long as the track's own.
type silence struct {
	packet []byte
	step   float64 // ticks of a packet
}

// silenceOf gives the silence of a track; false where its parameters can't be read.
func silenceOf(asc []byte, timescale uint32) (silence, bool) {
	c, err := aac.Parse(asc)
	if err != nil || c.SampleRate <= 0 || c.SampleRate > fastestSound {
		return silence{}, false
	}
	s := silence{
		packet: aac.Silence(asc),
		step:   float64(c.SamplesPerFrame) * float64(timescale) / float64(c.SampleRate),
	}
	return s, s.packet != nil && s.step >= 1
}

// silenceFor gives the silence of a stored track; false also where its packets last longer than its parameters say, so
// that what looks like a hole is none.
func silenceFor(a *mp4.Track) (silence, bool) {
	s, ok := silenceOf(a.Config.ASC, a.Timescale)
	const looked = 64
	for i := range min(a.Len()-1, looked) {
		if s.missing(int64(a.Sample(i).Duration)) == 0 {
			return s, ok
		}
	}
	return s, ok && a.Len() < 2
}

// at is how many ticks n packets last.
func (s silence) at(n int64) int64 { return int64(math.Round(float64(n) * s.step)) }

// within is how many packets there is room for: one may lack an eighth, which is how much the times of sound may be
// off.
func (s silence) within(ticks int64) int64 { return int64(max(float64(ticks)/s.step+1.0/8, 0)) }

// missing is how many packets belong behind one that begins so many ticks before the next.
func (s silence) missing(ticks int64) int64 { return max(s.within(ticks)-1, 0) }

// add appends n packets.
func (s silence) add(out []cmaf.Sample, n int64) []cmaf.Sample {
	for ; n > 0; n-- {
		out = append(out, cmaf.Sample{Duration: uint32(s.at(n) - s.at(n-1)), Sync: true, Data: s.packet})
	}
	return out
}

// fill puts silence where a chunk has none of its samples: in front of them, in holes between them, and up to its end.
func (s silence) fill(c timeline.Chunk, samples []cmaf.Sample) []cmaf.Sample {
	if len(samples) == 0 {
		out := s.add(nil, max(s.within(c.Duration), 1))
		fitSound(c.Duration, out)
		return out
	}
	fitSound(c.Duration-s.at(int64(c.Lead)), samples)
	out := s.add(make([]cmaf.Sample, 0, c.Lead+len(samples)), int64(c.Lead))
	for _, x := range samples {
		n := s.missing(int64(x.Duration))
		x.Duration -= uint32(s.at(n))
		out = s.add(append(out, x), n)
	}
	return out
}

// fitSound makes the last sample end where all of them are to.
func fitSound(long int64, samples []cmaf.Sample) {
	for i := range samples[:len(samples)-1] {
		long -= int64(samples[i].Duration)
	}
	if long >= 0 && long <= math.MaxUint32 {
		samples[len(samples)-1].Duration = uint32(long)
	}
}
