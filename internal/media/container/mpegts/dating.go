package mpegts

import (
	"slices"
	"time"

	"millrace/internal/media/frame"
)

// Decoding times that a stream does not carry. Section 2.7.5 has them left out where they equal the presentation time,
// and some muxers leave them out always (GStreamer's, of files that have none). With B-frames, presentation times are
// then in no order, so decoding times are made of them: pictures are decoded at the presentation times of the stream,
// in growing order, as many pictures earlier as a decoder has to reorder.

const (
	maxReorder = 16  // pictures, the most that H.264 and HEVC allow
	maxUndated = 16  // pictures that wait until their order tells how many are reordered
	maxHeld    = 512 // frames of both kinds
	clockStep  = time.Second
)

// dating makes decoding times.
type dating struct {
	given bool // the stream carries decoding times
	// by the parameter sets: how many pictures may be decoded before one that is presented before them; -1: they don't
	// say
	declared int
	depth    int             // how many are, as far as has been seen
	known    bool            // depth is
	newest   []time.Duration // presentation times of the newest pictures, ascending; at most one more than depth

	held     []frame.Frame // pictures that wait for depth, and the sound that came behind the first one
	pictures int           // of them
	bytes    int           // of all of them
}

// date completes the times of a picture that has a presentation time.
func (v *video) date(t stamps) stamps {
	x := &v.dating
	if t.decoding {
		x.given = true
	}
	if !x.given && x.known {
		t.dts = x.decodes(t.pts, v.interval)
	}
	return t
}

// decodes returns when the picture that comes next in decoding order is decoded.
func (d *dating) decodes(pts, interval time.Duration) time.Duration {
	if n := len(d.newest); n > 0 {
		early := n > d.depth && pts < d.newest[0]
		switch {
		case early && pts > d.newest[0]-clockStep && d.depth < max(d.declared, maxReorder):
			d.depth = max(d.depth+1, d.declared) // more are reordered than in what came first
		case early, pts > d.newest[n-1]+clockStep: // a jump of the clock
			d.newest = d.newest[:0]
		}
	}
	at, _ := slices.BinarySearch(d.newest, pts)
	d.newest = slices.Insert(d.newest, at, pts)
	if interval <= 0 {
		interval = time.Second / 30
	}
	if missing := d.depth + 1 - len(d.newest); missing >= 0 {
		return d.newest[0] - time.Duration(missing)*interval
	}
	d.newest = slices.Delete(d.newest, 0, 1)
	return d.newest[0]
}

// give writes a picture out, or keeps it until it is known how many are reordered.
func (v *video) give(d *Demuxer, f frame.Frame) error {
	x := &v.dating
	if x.given || x.known || x.declared == 0 {
		x.known = true
		if err := v.resolveDates(d); err != nil {
			return err
		}
		return d.write(f)
	}
	x.pictures++
	return v.keep(d, f)
}

// keep has a frame wait, within bounds, until it is known how many pictures are reordered.
func (v *video) keep(d *Demuxer, f frame.Frame) error {
	x := &v.dating
	x.held, x.bytes = append(x.held, f), x.bytes+len(f.Data)
	if x.pictures < maxUndated && len(x.held) < maxHeld && x.bytes < maxStartBytes &&
		(f.PTS-x.held[0].PTS).Abs() < maxStart {
		return nil
	}
	return v.resolveDates(d)
}

// resolveDates writes out what was kept. The order of the pictures tells how many are reordered.
func (v *video) resolveDates(d *Demuxer) error {
	x := &v.dating
	held := x.held
	x.held, x.pictures, x.bytes = nil, 0, 0
	if len(held) > 0 && !x.given && !x.known {
		v.dateHeld(held)
	}
	for _, f := range held {
		if err := d.write(f); err != nil {
			return err
		}
	}
	return nil
}

// dateHeld gives decoding times to what was kept.
func (v *video) dateHeld(held []frame.Frame) {
	x := &v.dating
	var times []time.Duration // of presentation
	for _, f := range held {
		if f.Kind == frame.Video {
			times = append(times, f.PTS)
		}
	}
	x.known, x.depth = true, depthOf(times)
	if x.depth > 0 {
		x.depth, v.interval = max(x.depth, x.declared), stepOf(times)
	}
	for i := range held {
		f := &held[i]
		if f.Kind != frame.Video {
			continue
		}
		f.DTS = x.decodes(f.PTS, v.interval)
		v.dts = f.DTS
		if v.key != nil && v.key.PTS == f.PTS {
			v.key.DTS = f.DTS
		}
	}
}

// depthOf counts how many pictures, given by their presentation times, are at most decoded before one that is presented
// before them.
func depthOf(times []time.Duration) int {
	depth := 0
	for i, t := range times {
		before := 0
		for _, u := range times[:i] {
			if u > t && u < t+clockStep {
				before++
			}
		}
		depth = max(depth, before)
	}
	return min(depth, maxReorder)
}

// stepOf is the usual distance of two pictures.
func stepOf(times []time.Duration) time.Duration {
	times = slices.Sorted(slices.Values(times))
	for i := len(times) - 1; i > 0; i-- {
		times[i] -= times[i-1]
	}
	steps := slices.Sorted(slices.Values(times[1:]))
	if len(steps) == 0 {
		return 0
	}
	return steps[len(steps)/2]
}
