package ondemand

// place is a sample at which a segment may begin.
type place struct {
	sample int
	at     int64 // its decoding time in ticks
	bytes  int64 // of the segment up to it
}

func (p place) known() bool { return p.sample > 0 }

// cutter decides in front of which video samples segments begin. It is told of one sample after the other, so that it
// serves a file as well as a stream; the same samples always give the same cuts.
//
// A segment begins at an IDR, `wanted` after the one before or as near as key frames allow. Where there is no IDR
// within `limit` ticks or maxBytes bytes it begins at another sync sample (an open GOP) or, failing that, at any
// sample: nothing is lost that way, but such a segment can't be decoded by itself.
type cutter struct {
	wanted, limit, maxBytes int64
	// wanted of the first segment; each further one may last as long as all before it. 0: no less than wanted
	first int64

	start    place // of the segment
	origin   int64 // of the first
	bytes    int64
	before   place // the sample before
	idr      place // the last IDR since start
	sync     place // the last sync sample since start
	lastKey  int64 // decoding time of the last key frame
	sparse   bool  // IDRs are too rare around here: other sync samples are as good, and none is waited for
	anything bool
}

// next is told of sample i and gives the samples, up to two, in front of which a segment begins, in order. alone says
// of an IDR, and of the first sample, that it is known to have no other IDR within the limit.
func (c *cutter) next(i int, at, size int64, sync, idr, alone bool) (cuts []int) {
	here := place{sample: i, at: at, bytes: c.bytes}
	if idr || !c.anything {
		c.sparse = alone
	}
	if !c.anything {
		c.anything, c.start, c.origin, c.lastKey = true, here, at, at
	}
	for len(cuts) < 2 {
		p, ok := c.choose(here, size, sync, idr)
		if !ok {
			break
		}
		cuts = append(cuts, p.sample)
		c.begin(p)
		here.bytes = c.bytes
	}
	if idr && c.start.sample != i {
		c.idr = here
	}
	if sync {
		c.lastKey = at
		if c.start.sample != i {
			c.sync = here
		}
	}
	c.before = here
	c.bytes += size
	return cuts
}

// choose says where the segment ends, if that is known now that sample `here` has come.
func (c *cutter) choose(here place, size int64, sync, idr bool) (place, bool) {
	elapsed, wanted := here.at-c.start.at, c.wanted
	if c.first > 0 {
		wanted = min(wanted, max(c.first, c.start.at-c.origin))
	}
	limit := c.limit
	if c.sparse {
		limit = c.wanted
	}
	over := elapsed > limit || c.bytes+size > c.maxBytes
	key := idr || c.sparse && sync
	switch {
	case here.sample == c.start.sample:
		return place{}, false
	case over && c.idr.known():
		return c.idr, true
	case key && (over || elapsed+(here.at-c.lastKey)/2 >= wanted):
		// the next key frame, as far away as this one from the last, would be farther from what is wanted
		return here, true
	case !over:
		return place{}, false
	}
	c.sparse = true
	switch {
	case c.sync.known():
		return c.sync, true
	case elapsed > limit && c.before.sample > c.start.sample:
		return c.before, true // up to `here` it would be longer than the limit
	}
	return here, true
}

// begin starts a segment at p.
func (c *cutter) begin(p place) {
	c.bytes -= p.bytes
	c.start = place{sample: p.sample, at: p.at}
	for _, k := range []*place{&c.idr, &c.sync, &c.before} {
		k.bytes -= p.bytes
		if k.sample <= p.sample {
			*k = place{}
		}
	}
}
