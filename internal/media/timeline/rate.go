package timeline

// Rate measures bit rates as RFC 8216bis section 4.4.6.2 has them: the average over all, and the peak over every
// contiguous set of segments that lasts between half a target duration and one and a half, so that a lone key frame in
// a segment of its own does not count for a second of such frames. Where segments are much shorter than the target,
// those of a second or more count by themselves too. It measures how short segments are in the same way, over sets of a
// second and a half or more.
type Rate struct {
	all  amount
	last [maxSet]amount // the newest segments, oldest first: those that a set with the next one may hold
	n    int            // how many of them there are
	peak float64
	most float64 // of a set's length, what is in the first second of a segment: 0 to 1
}

type amount struct {
	bytes, ticks int64
	first        int64 // of the ticks, those in the first second of a segment
}

func (a *amount) add(b amount) {
	a.bytes += b.bytes
	a.ticks += b.ticks
	a.first += b.first
}

// maxSet is how many segments are looked at together. Where they are shorter than that, the oldest count as one.
const maxSet = 8

// Add counts the next segment: bytes and ticks of a time scale; target in seconds, 0: unknown.
func (r *Rate) Add(size, ticks int64, timescale uint32, target int) {
	if size <= 0 || ticks <= 0 || timescale == 0 {
		return
	}
	if r.n == maxSet {
		r.last[1].add(r.last[0])
		r.drop(1)
	}
	r.last[r.n] = amount{size, ticks, min(ticks, int64(timescale))}
	r.all.add(r.last[r.n])
	r.n++
	half := int64(max(target, 1)) * int64(timescale) / 2
	least := min(half, int64(timescale))
	var set amount
	for i := r.n - 1; i >= 0; i-- {
		set.add(r.last[i])
		if set.ticks > 3*half && i < r.n-1 { // a segment alone always counts
			r.drop(i + 1)
			return
		}
		if set.ticks >= least {
			r.peak = max(r.peak, set.perSecond(timescale))
		}
		if 2*set.ticks >= 3*int64(timescale) {
			r.most = max(r.most, set.part())
		}
	}
}

// drop forgets the n oldest segments.
func (r *Rate) drop(n int) {
	copy(r.last[:], r.last[n:r.n])
	r.n -= n
}

// Average is the mean in bits per second; 0 before the first segment.
func (r *Rate) Average(timescale uint32) float64 { return r.all.perSecond(timescale) }

// Ticks is how long the segments were together.
func (r *Rate) Ticks() int64 { return r.all.ticks }

// Peak is the fastest set in bits per second; the average while everything is shorter than a set.
func (r *Rate) Peak(timescale uint32) float64 { return max(r.peak, r.Average(timescale)) }

// Segment is how long segments are in the set with the shortest ones, in seconds, in the mean; a segment of less than a
// second counts as so much of one, so that it is at least 1. It is that of all segments while everything is shorter
// than a set, and 0 before the first one.
func (r *Rate) Segment() float64 {
	if r.all.ticks == 0 {
		return 0
	}
	return 1 / max(r.most, r.all.part())
}

func (a amount) perSecond(timescale uint32) float64 {
	if a.ticks == 0 {
		return 0
	}
	return float64(a.bytes) * 8 * float64(timescale) / float64(a.ticks)
}

func (a amount) part() float64 { return float64(a.first) / float64(a.ticks) }
