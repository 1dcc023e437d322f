package clip

import (
	"context"
	"math"
	"slices"
)

// ends finds the first and the last picture, which says where exactly everything is cut. What is shown at an instant of
// the clip is what the recording shows then: the first picture is the one that is on screen where the clip begins, the
// last one the one that is right in front of its end. Times that lie within two milliseconds of a picture's are that
// picture's.
func (y *renditionCut) ends(ctx context.Context) error {
	first, err := y.begin(ctx)
	if err != nil {
		return err
	}
	last, err := y.end(ctx, first)
	if err != nil {
		return err
	}
	if y.cutEnds = []*segment{first, last}; y.a == y.b {
		first.until, first.stop, first.shorter = last.until, last.stop, last.shorter
		y.cutEnds = y.cutEnds[:1]
	}
	y.cutEnds = slices.DeleteFunc(y.cutEnds, func(r *segment) bool { return r.samples == nil || !r.later && !r.shorter })
	return nil
}

// segment is one of the two segments at the ends.
type segment struct {
	chunk   int
	time    int64    // of the chunk
	samples []sample // in the order of decoding; nil where there is no media
	pts     []int64  // ascending

	from, until int   // which of pts are shown
	start       int64 // when the first one is
	stop        int64 // when the last one's time is over
	later       bool  // something in front is left out
	shorter     bool  // something at the end is

	// The samples that stay as they are, in the order of decoding. What is shown in front of them and behind them is
	// made.
	keep, kept int
}

func (y *renditionCut) load(ctx context.Context, i int) (*segment, error) {
	c := &y.src.Chunks[i]
	r := &segment{chunk: i, time: c.Time}
	if c.Gap {
		return r, nil
	}
	var err error
	if r.samples, err = y.read(ctx, i); err != nil {
		return nil, err
	}
	for _, s := range r.samples {
		r.pts = append(r.pts, s.pts)
	}
	slices.Sort(r.pts)
	r.until, r.start, r.stop = len(r.pts), r.pts[0], y.ticks(y.border(i+1))
	return r, nil
}

// begin finds the first picture; the clip begins with it.
func (y *renditionCut) begin(ctx context.Context) (*segment, error) {
	for {
		r, err := y.load(ctx, y.a)
		if err != nil {
			return nil, err
		}
		at, slack := y.ticks(y.from), y.ticks(snap)
		if y.coarse() {
			at, slack = int64(math.Floor((y.from+snap)*float64(y.src.Timescale))), 0
		}
		if r.samples == nil {
			y.shorten(y.a, at, none)
			return r, nil
		}
		if at+slack >= r.stop && y.a < y.b { // the next segment's picture is meant
			y.a++
			y.from = y.border(y.a)
			continue
		}
		if y.whole && y.a == 0 {
			return r, nil
		}
		for r.from+1 < len(r.pts) && r.pts[r.from+1] <= at+slack {
			r.from++
		}
		r.start = max(r.pts[r.from], at)
		if r.start-r.pts[r.from] <= slack {
			r.start = r.pts[r.from]
		}
		r.later = r.start > r.pts[0]
		if r.later || r.start <= at+slack { // unless the first picture comes late
			y.from = float64(r.start) / float64(y.src.Timescale)
		}
		return r, nil
	}
}

// end finds the last picture.
func (y *renditionCut) end(ctx context.Context, first *segment) (*segment, error) {
	for {
		r := first
		if y.b > y.a {
			var err error
			if r, err = y.load(ctx, y.b); err != nil {
				return nil, err
			}
		}
		at, slack := y.ticks(y.to), y.ticks(snap)
		if y.coarse() { // as long as was asked for, from where it begins
			at, slack = y.ticks(y.to-(y.asked-y.from)), 0
		}
		if r.samples == nil {
			y.shorten(y.b, none, at)
			return r, nil
		}
		if at+slack >= r.stop {
			y.to = max(y.to, float64(r.stop)/float64(y.src.Timescale))
			return r, nil
		}
		n := 0
		for n < len(r.pts) && r.pts[n] < at-slack {
			n++
		}
		if n == 0 && y.b > y.a { // where segments border is known by decoding times only
			y.b--
			y.to, y.asked = y.border(y.b+1), y.from
			continue
		}
		if n <= r.from {
			return nil, ErrEmpty
		}
		if n < len(r.pts) && r.pts[n]-at <= slack {
			at = r.pts[n]
		}
		r.until, r.stop, r.shorter = n, at, true
		y.to = float64(at) / float64(y.src.Timescale)
		return r, nil
	}
}

// shorten cuts a chunk without media; -1 leaves an end where it is.
func (y *renditionCut) shorten(i int, from, to int64) {
	c, ok := y.made[i]
	if !ok {
		c = y.src.Chunks[i]
	}
	begin, end := y.ticks(y.border(i)), y.ticks(y.border(i+1))
	if from > begin {
		c.Time, c.Duration = c.Time+from-begin, c.Duration-(from-begin)
	}
	if to >= 0 && to < end {
		c.Duration -= end - to
	}
	c.Duration = max(c.Duration, 1)
	y.made[i] = c
}
