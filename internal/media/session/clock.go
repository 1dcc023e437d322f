package session

import (
	"math"
	"time"
)

const (
	clockWindow = 10 * time.Second // that a comparison takes
	clockOff    = 0.003            // more than this between samples and timestamps is no tolerance of a crystal
	// that samples and timestamps have to be apart before arrival tells which of them are right.
	clockSure   = 80 * time.Millisecond
	clockFollow = 10 * time.Millisecond  // what is left of the timestamps' error before they are followed less
	clockBreak  = 500 * time.Millisecond // a step larger than this is none of the clock
)

// soundClock compares how much sound came with the time that its timestamps and its arrival say. Some encoders stamp
// with a step that is rounded, or for another sample rate: then there are as many samples as time has passed, and the
// timestamps are wrong. Others have an audio device that does not keep its rate: then the samples are too many or too
// few.
type soundClock struct {
	last     time.Duration // timestamp of the last frame
	received time.Time     // and its arrival
	length   time.Duration // and how long it lasts
	seen     bool

	window, trend clockTimes
	windows       int
	skew          float64 // how many more samples there are than the timestamps have time for, as a part; 0: as many
	byCount       bool    // the samples are right
}

// clockTimes is the same stretch on three clocks.
type clockTimes struct{ counted, stamped, arrived time.Duration }

func (c *clockTimes) add(o clockTimes) {
	c.counted, c.stamped, c.arrived = c.counted+o.counted, c.stamped+o.stamped, c.arrived+o.arrived
}

// frame takes a frame that is stamped at, lasts length and arrived at received.
func (s *soundClock) frame(at, length time.Duration, received time.Time) {
	step := clockTimes{s.length, at - s.last, received.Sub(s.received)}
	known := s.seen
	s.last, s.length, s.received, s.seen = at, length, received, true
	if !known || step.stamped < -clockBreak || step.stamped > clockBreak || step.counted <= 0 {
		s.window = clockTimes{}
		return
	}
	frame := step.counted
	s.window.add(step)
	// Frames that did not come are no fault of the clock. A long step behind short ones is none of them: some stamp
	// several frames alike.
	late := min(step.stamped-frame, s.window.stamped-s.window.counted)
	if lost := int64((late + frame/4) / frame); lost > 0 {
		s.window.counted += time.Duration(lost * int64(frame))
	}
	if s.window.stamped >= clockWindow {
		s.judge()
	}
}

// judge ends a window.
func (s *soundClock) judge() {
	w := s.window
	s.window = clockTimes{}
	if s.windows++; s.windows == 1 { // what the encoder had in store came at once
		return
	}
	s.skew = float64(w.counted-w.stamped) / float64(w.stamped)
	if math.Abs(s.skew) < clockOff {
		s.skew, s.byCount, s.trend = 0, false, clockTimes{}
		return
	}
	s.trend.add(w)
	if abs(s.trend.counted-s.trend.stamped) < clockSure {
		return
	}
	byCount, byStamp := abs(s.trend.arrived-s.trend.counted), abs(s.trend.arrived-s.trend.stamped)
	switch {
	case 3*byCount < byStamp:
		s.byCount = true
	case 3*byStamp < byCount:
		s.byCount = false
	}
}
