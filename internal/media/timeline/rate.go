package timeline

// Rate measures bit rates as RFC 8216bis section 4.4.6.2 has them: the average over all, and the peak over stretches of at least half
// a target duration, so that a lone key frame in a segment of its own does not count for a second of such frames.
type Rate struct {
	bytes, ticks       int64
	runBytes, runTicks int64 // segments too short to count alone
	peak               float64
}

// Add counts the next segment: bytes and ticks of a time scale; target in seconds, 0: unknown.
func (r *Rate) Add(size, ticks int64, timescale uint32, target int) {
	if size <= 0 || ticks <= 0 || timescale == 0 {
		return
	}
	r.bytes += size
	r.ticks += ticks
	half := int64(max(target, 1)) * int64(timescale) / 2
	if ticks >= half {
		r.peak = max(r.peak, perSecond(size, ticks, timescale))
	}
	r.runBytes += size
	r.runTicks += ticks
	if r.runTicks >= half {
		if r.runTicks <= 3*half {
			r.peak = max(r.peak, perSecond(r.runBytes, r.runTicks, timescale))
		}
		r.runBytes, r.runTicks = 0, 0
	}
}

// Average is the mean in bits per second; 0 before the first segment.
func (r *Rate) Average(timescale uint32) float64 { return perSecond(r.bytes, r.ticks, timescale) }

// Peak is the fastest stretch in bits per second; the average while everything is shorter than a stretch.
func (r *Rate) Peak(timescale uint32) float64 { return max(r.peak, r.Average(timescale)) }

func perSecond(bytes, ticks int64, timescale uint32) float64 {
	if ticks == 0 {
		return 0
	}
	return float64(bytes) * 8 * float64(timescale) / float64(ticks)
}
