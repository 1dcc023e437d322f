package asset

import (
	"math"
	"slices"
	"time"
)

// Pace is how work has got on of late: marks of how much of it was done when, the oldest first. It tells how long the
// rest will take. It is stored beside the progress, so that it outlasts a restart. The zero value knows nothing.
type Pace []Mark

// Mark is how much of some work was done at a time.
type Mark struct {
	At      time.Time `json:"at"`
	Percent float64   `json:"percent"`
}

const (
	// paceSpan is how much of the past the pace is taken from: the machine may have been less busy before. It is more
	// where marks are further apart.
	paceSpan = time.Minute
	// paceStep is between two marks; of those that come sooner only the last is kept. So there are 14 at most.
	paceStep = 5 * time.Second
	// paceLeast is less than which tells nothing.
	paceLeast = 10 * time.Second
	// paceHeld is how many times the span of its marks a pace holds without another mark.
	paceHeld = 3
	// mostLeft is the longest time that is told.
	mostLeft = 1000 * time.Hour
)

// progressed is the progress of work, in whole percent, and its pace when so much of it is done.
func progressed(p Pace, percent float64, now time.Time) (float64, Pace) {
	percent = min(max(percent, 0), 100)
	return math.Floor(percent), p.with(percent, now)
}

// Left is how long the rest of the work takes, as far as can be told now; 0: nobody knows.
func (p Pace) Left(now time.Time) time.Duration {
	if p.span() < paceLeast || p.stale(now) {
		return 0
	}
	first, last := p[0], p[len(p)-1]
	done, rest := last.Percent-first.Percent, 100-last.Percent
	if done <= 0 {
		return 0
	}
	since := now.Sub(last.At)
	usual := min(since, p.longestGap())
	took := p.span() + since - usual // to be longer without a mark than before is to be slower
	left := min(float64(took)*rest/done, float64(mostLeft))
	return max(time.Duration(left)-usual, time.Second)
}

// with is the pace when so much is done, in percent. Work of which less is done than before was begun again: it then
// has the pace that it had. One that has stood still for long has none.
func (p Pace) with(percent float64, now time.Time) Pace {
	out := slices.Clone(p)
	if p.stale(now) {
		out = nil
	}
	if n := len(out); n > 0 && percent < out[n-1].Percent {
		lost := out[n-1].Percent
		for i := range out {
			out[i].Percent -= lost
		}
	}
	if n := len(out); n > 1 && out[n-1].At.Sub(out[n-2].At) < paceStep {
		out = out[:n-1]
	}
	out = append(out, Mark{At: now, Percent: percent})
	for len(out) > 2 && now.Sub(out[1].At) >= paceSpan {
		out = out[1:]
	}
	return out
}

// longestGap is the longest time between two marks.
func (p Pace) longestGap() (longest time.Duration) {
	for i := range p[1:] {
		longest = max(longest, p[i+1].At.Sub(p[i].At))
	}
	return longest
}

// span is from the first mark to the last.
func (p Pace) span() time.Duration {
	if len(p) == 0 {
		return 0
	}
	return p[len(p)-1].At.Sub(p[0].At)
}

// stale reports whether the marks say nothing any more: there was none for much longer than they span, or the clock was
// set back.
func (p Pace) stale(now time.Time) bool {
	if len(p) == 0 {
		return false
	}
	since := now.Sub(p[len(p)-1].At)
	return since < 0 || len(p) > 1 && since > paceHeld*max(p.span(), paceSpan)
}
