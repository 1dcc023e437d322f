package session

import (
	"math"
	"slices"
	"time"
)

// interval is the exact time between two frames: num/den seconds, both positive, den at most 90000.
type interval struct{ num, den int64 }

func (i interval) duration() time.Duration { return time.Duration(i.num * int64(time.Second) / i.den) }
func (i interval) fps() float64            { return float64(i.den) / float64(i.num) }

const ticks = 90000 // per second

// knownRates are the intervals that cameras and encoders work at.
var knownRates = []interval{ //nolint:gochecknoglobals // a table
	{1, 60},
	{1001, 60000},
	{1, 50},
	{1, 30},
	{1001, 30000},
	{1, 25},
	{1, 24},
	{1001, 24000},
	{1, 15},
	{1, 20},
	{1, 10},
	{1, 120},
	{1, 100},
	{1, 48},
	{2, 25},
	{1001, 15000},
	{1, 12},
	{1, 8},
	{1, 6},
	{1, 5},
	{1, 4},
	{1, 3},
	{1, 2},
	{1, 1},
	{1, 90},
	{1, 72},
	{1, 75},
	{1, 40},
	{1, 16},
	{1, 18},
	{1, 14},
	{2, 1},
}

// rational finds the interval for an announced rate; ok is false for one that no grid can be made of.
func rational(fps float64) (interval, bool) {
	if !(fps >= 0.1 && fps <= 250) {
		return interval{}, false
	}
	for _, r := range knownRates {
		if math.Abs(r.fps()/fps-1) < 3e-4 {
			return r, true
		}
	}
	if thousandth := math.Round(fps * 1000); math.Abs(thousandth/1000-fps) < 1e-6 && thousandth <= ticks {
		d := gcd(1000, int64(thousandth))
		return interval{1000 / d, int64(thousandth) / d}, true
	}
	return measured(time.Duration(float64(time.Second) / fps)), true
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// measured is an interval to the nearest 90 kHz tick, for sources that run at no rate in particular.
func measured(d time.Duration) interval {
	return interval{max(1, (int64(d)*ticks+int64(time.Second)/2)/int64(time.Second)), ticks}
}

// rate is what a window of decoding times says about a video.
type rate struct {
	interval interval // of the grid, or about the mean
	constant bool
	fps      float64 // 0: unknown
}

const (
	minGridTolerance = 2 * time.Millisecond // RTMP's clock has milliseconds: half of them go to rounding
	maxGridTolerance = 10 * time.Millisecond
)

// classify decides whether times (growing) stand on a grid, and on which. announced is the rate of the parameter sets,
// 0 if there is none. Frames may be missing in between.
func classify(times []time.Duration, announced float64) rate {
	said, haveSaid := rational(announced)
	if len(times) < 2 {
		if haveSaid {
			return rate{said, true, said.fps()}
		}
		return rate{interval: interval{1, 30}}
	}
	median := medianStep(times)
	span := times[len(times)-1] - times[0]
	tolerance := min(max(median/10, minGridTolerance), maxGridTolerance)
	best, bestSpread := interval{}, time.Duration(math.MaxInt64)
	try := func(i interval, favour time.Duration) {
		if d := i.duration(); d > median-median/40-time.Millisecond && d < median+median/40+time.Millisecond {
			if s, ok := gridSpread(times, i); ok && s <= tolerance && s-favour < bestSpread {
				best, bestSpread = i, s-favour
			}
		}
	}
	if haveSaid { // fields counted as frames, and the other way round, are common mistakes of encoders
		for _, f := range []float64{announced, announced * 2, announced / 2} {
			if i, ok := rational(f); ok {
				try(i, 500*time.Microsecond)
			}
		}
	}
	if len(times) >= leastProbed {
		for _, i := range knownRates {
			try(i, 0)
		}
	}
	if best.den == 0 && len(times) >= 8 {
		if n := (span + median/2) / median; n > 0 {
			try(measured(span/n), 0)
		}
	}
	if best.den != 0 {
		return rate{best, true, best.fps()}
	}
	mean := span / time.Duration(len(times)-1)
	if mean <= 0 {
		return rate{interval: interval{1, 30}}
	}
	return rate{interval: measured(mean), fps: float64(time.Second) / float64(mean)}
}

func medianStep(times []time.Duration) time.Duration {
	var buf [64]time.Duration
	steps := buf[:0]
	for i := 1; i < len(times) && len(steps) < len(buf); i++ {
		steps = append(steps, times[i]-times[i-1])
	}
	slices.Sort(steps)
	return max(steps[len(steps)/2], time.Millisecond)
}

// gridSpread is how far times lie apart around the places of a grid; ok is false when two fall on the same place.
func gridSpread(times []time.Duration, i interval) (spread time.Duration, ok bool) {
	var low, high time.Duration
	place := int64(-1)
	for _, t := range times {
		since := int64(t - times[0])
		k := (since*i.den + i.num*int64(time.Second)/2) / (i.num * int64(time.Second))
		if k <= place {
			return 0, false
		}
		place = k
		off := time.Duration(since - k*i.num*int64(time.Second)/i.den)
		low, high = min(low, off), max(high, off)
	}
	return high - low, true
}

// grid is a row of places an interval apart. Places are exact: nothing adds up over days.
type grid struct {
	interval interval
	anchor   int64 // 90 kHz ticks
	k        int64 // intervals from the anchor to the next place
}

// newGrid starts at the first tick that is not before at; whole milliseconds are ticks.
func newGrid(i interval, at time.Duration) grid {
	sec, rest := int64(at/time.Second), int64(at%time.Second)
	return grid{interval: i, anchor: sec*ticks + (rest*ticks+int64(time.Second)-1)/int64(time.Second)}
}

// at is the time of the place n after the next one, n at least 0, to the nearest nanosecond.
func (g grid) at(n int64) time.Duration {
	d := ticks * g.interval.den
	t := g.anchor*g.interval.den + (g.k+n)*g.interval.num*ticks
	sec, rest := t/d, t%d
	return time.Duration(sec)*time.Second + time.Duration((rest*int64(time.Second)+d/2)/d)
}

// advance goes n places on. The anchor follows in whole seconds, which is exact, so that k stays small.
func (g *grid) advance(n int64) {
	g.k += n
	if g.k >= g.interval.den {
		g.anchor += g.k / g.interval.den * g.interval.num * ticks
		g.k %= g.interval.den
	}
}

// shift moves the places that follow.
func (g *grid) shift(d time.Duration) { g.anchor += int64(d) * ticks / int64(time.Second) }
