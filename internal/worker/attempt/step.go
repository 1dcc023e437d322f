package attempt

import "time"

// Step is how far work was, in percent, when that was written down.
type Step struct {
	Percent float64
	At      time.Time
}

// What is worth writing down: so much more, in percent, or any more after so long.
const (
	worthPercent = 2
	worthTime    = 15 * time.Second
)

// Worth reports whether it is worth writing down that work is so far now: each time costs the database a write.
func (s Step) Worth(percent float64, now time.Time) bool {
	more := percent - s.Percent
	return more >= worthPercent || more > 0 && now.Sub(s.At) >= worthTime
}
