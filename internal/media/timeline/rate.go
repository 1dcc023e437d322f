package timeline

// Rate measures bit rates as RFC 8216bis section 4.4.6.2 has them: the average over all, and the peak over every
// contiguous set of segments that lasts between half a target duration and one and a half, so that a lone key frame in
// a segment of its own does not count for a second of such frames. Where segments are much shorter than the target,
// those of a second or more count by themselves too.
type Rate struct {
	bytes, ticks int64
	last         [maxSet]amount // the newest segments, oldest first: those that a set with the next one may hold
	n            int            // how many of them there are
	peak         float64
}

type amount struct{ bytes, ticks int64 }

// maxSet is how many segments are looked at together. Where they are shorter than that, the oldest count as one.
const maxSet = 8

// Add counts the next segment: bytes and ticks of a time scale; target in seconds, 0: unknown.
func (r *Rate) Add(size, ticks int64, timescale uint32, target int) {
	if size <= 0 || ticks <= 0 || timescale == 0 {
		return
	}
	r.bytes += size
	r.ticks += ticks
	if r.n == maxSet {
		r.last[1].bytes += r.last[0].bytes
		r.last[1].ticks += r.last[0].ticks
		r.drop(1)
	}
	r.last[r.n] = amount{size, ticks}
	r.n++
	half := int64(max(target, 1)) * int64(timescale) / 2
	least := min(half, int64(timescale))
	var all amount
	for i := r.n - 1; i >= 0; i-- {
		all.bytes += r.last[i].bytes
		all.ticks += r.last[i].ticks
		if all.ticks > 3*half && i < r.n-1 { // a segment alone always counts
			r.drop(i + 1)
			return
		}
		if all.ticks >= least {
			r.peak = max(r.peak, perSecond(all.bytes, all.ticks, timescale))
		}
	}
}

// drop forgets the n oldest segments.
func (r *Rate) drop(n int) {
	copy(r.last[:], r.last[n:r.n])
	r.n -= n
}

// Average is the mean in bits per second; 0 before the first segment.
func (r *Rate) Average(timescale uint32) float64 { return perSecond(r.bytes, r.ticks, timescale) }

// Ticks is how long the segments were together.
func (r *Rate) Ticks() int64 { return r.ticks }

// Peak is the fastest set in bits per second; the average while everything is shorter than a set.
func (r *Rate) Peak(timescale uint32) float64 { return max(r.peak, r.Average(timescale)) }

func perSecond(bytes, ticks int64, timescale uint32) float64 {
	if ticks == 0 {
		return 0
	}
	return float64(bytes) * 8 * float64(timescale) / float64(ticks)
}
