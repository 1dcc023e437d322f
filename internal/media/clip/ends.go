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
func (rc *renditionCut) ends(ctx context.Context) error {
	first, err := rc.begin(ctx)
	if err != nil {
		return err
	}
	last, err := rc.end(ctx, first)
	if err != nil {
		return err
	}
	if rc.cutEnds = []*segment{first, last}; rc.a == rc.b {
		first.until, first.stop, first.shorter = last.until, last.stop, last.shorter
		rc.cutEnds = rc.cutEnds[:1]
	}
	rc.cutEnds = slices.DeleteFunc(rc.cutEnds, func(r *segment) bool {
		return r.samples == nil || !r.later && !r.shorter
	})
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

func (rc *renditionCut) load(ctx context.Context, i int) (*segment, error) {
	c := &rc.src.Chunks[i]
	r := &segment{chunk: i, time: c.Time}
	if c.Gap {
		return r, nil
	}
	var err error
	if r.samples, err = rc.read(ctx, i); err != nil {
		return nil, err
	}
	for _, s := range r.samples {
		r.pts = append(r.pts, s.pts)
	}
	slices.Sort(r.pts)
	r.until, r.start, r.stop = len(r.pts), r.pts[0], rc.ticks(rc.border(i+1))
	return r, nil
}

// begin finds the first picture; the clip begins with it.
func (rc *renditionCut) begin(ctx context.Context) (*segment, error) {
	for {
		r, err := rc.load(ctx, rc.a)
		if err != nil {
			return nil, err
		}
		at, slack := rc.ticks(rc.from), rc.ticks(snap)
		if rc.coarse() {
			at, slack = int64(math.Floor((rc.from+snap)*float64(rc.src.Timescale))), 0
		}
		if r.samples == nil {
			rc.shorten(rc.a, at, none)
			return r, nil
		}
		if at+slack >= r.stop && rc.a < rc.b { // the next segment's picture is meant
			rc.a++
			rc.from = rc.border(rc.a)
			continue
		}
		if rc.whole && rc.a == 0 {
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
			rc.from = float64(r.start) / float64(rc.src.Timescale)
		}
		return r, nil
	}
}

// end finds the last picture.
func (rc *renditionCut) end(ctx context.Context, first *segment) (*segment, error) {
	for {
		r := first
		if rc.b > rc.a {
			var err error
			if r, err = rc.load(ctx, rc.b); err != nil {
				return nil, err
			}
		}
		at, slack := rc.ticks(rc.to), rc.ticks(snap)
		if rc.coarse() { // as long as was asked for, from where it begins
			at, slack = rc.ticks(rc.to-(rc.asked-rc.from)), 0
		}
		if r.samples == nil {
			rc.shorten(rc.b, none, at)
			return r, nil
		}
		if at+slack >= r.stop {
			rc.to = max(rc.to, float64(r.stop)/float64(rc.src.Timescale))
			return r, nil
		}
		n := 0
		for n < len(r.pts) && r.pts[n] < at-slack {
			n++
		}
		if n == 0 && rc.b > rc.a { // where segments border is known by decoding times only
			rc.b--
			rc.to, rc.asked = rc.border(rc.b+1), rc.from
			continue
		}
		if n <= r.from {
			return nil, ErrEmpty
		}
		if n < len(r.pts) && r.pts[n]-at <= slack {
			at = r.pts[n]
		}
		r.until, r.stop, r.shorter = n, at, true
		rc.to = float64(at) / float64(rc.src.Timescale)
		return r, nil
	}
}

// shorten cuts a chunk without media; -1 leaves an end where it is.
func (rc *renditionCut) shorten(i int, from, to int64) {
	c, ok := rc.made[i]
	if !ok {
		c = rc.src.Chunks[i]
	}
	begin, end := rc.ticks(rc.border(i)), rc.ticks(rc.border(i+1))
	if from > begin {
		c.Time, c.Duration = c.Time+from-begin, c.Duration-(from-begin)
	}
	if to >= 0 && to < end {
		c.Duration -= end - to
	}
	c.Duration = max(c.Duration, 1)
	rc.made[i] = c
}
