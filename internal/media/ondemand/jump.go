package ondemand

import (
	"cmp"
	"slices"

	"millrace/internal/media/container/cmaf"
)

const (
	// jump is by how many seconds all tracks have to go on later than they ended for their clock to have jumped, as
	// where recordings were put together: what lies between is no time that anybody has seen. ffmpeg has the same in
	// MPEG-TS.
	jump = 10
	// jumpAlone is the same where there is one track only: a screen may well be still for minutes.
	jumpAlone = 600
	// mostJumps is how often that may be: a file in which it is oftener is as long as it says.
	mostJumps = 1000
	// longSample is the most, in seconds, that the last sample before a jump is taken to last: its duration is up to
	// the next one.
	longSample = 0.04
)

// clock closes jumps of the file's clock.
type clock struct {
	alone  bool // there is one track
	begun  bool
	newest float64 // end of what has come, in seconds
	jumps  []jumped
}

type jumped struct{ at, by float64 } // seconds

// see is told when a sample is shown that lasts so long, in seconds.
func (c *clock) see(at, long float64) {
	most := float64(jump)
	if c.alone {
		most = jumpAlone
	}
	if c.begun && at > c.newest+most && len(c.jumps) < mostJumps {
		c.jumps = append(c.jumps, jumped{at, at - c.newest})
	}
	c.begun, c.newest = true, max(c.newest, at+min(long, longSample))
}

// by is how much earlier something is than the file says, in seconds. What is decoded before a jump may be shown behind
// it: decoding and showing each have their own.
func (c *clock) by(at float64) float64 {
	total := 0.0
	for _, j := range c.jumps {
		if at > j.at-j.by/2 { // what comes late is of the time before
			total += j.by
		}
	}
	return total
}

// arrival is a sample with its trackBuffer and its time in the file.
type arrival struct {
	t   *trackBuffer
	s   cmaf.Sample
	dts int64
	at  float64 // seconds
}

// addFragments puts fragments onto their buffers, in the order of their samples' times.
func (s *streamer) addFragments(fragments []cmaf.Fragment) {
	var all []arrival
	for _, f := range fragments {
		for _, t := range s.buffers() {
			if t.id != f.TrackID {
				continue
			}
			dts := int64(f.BaseMediaDecodeTime)
			for _, x := range f.Samples {
				all = append(all, arrival{t, x, dts, float64(dts) / t.scale()})
				dts += int64(x.Duration)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	s.clock.alone = len(s.buffers()) < 2
	for _, a := range all {
		pts := a.dts + int64(a.s.CompositionOffset)
		shown := float64(pts) / a.t.scale()
		s.clock.see(shown, float64(a.s.Duration)/a.t.scale())
		a.t.add(a.s, a.dts-a.t.at(s.clock.by(a.at)), pts-a.t.at(s.clock.by(shown)))
	}
}
