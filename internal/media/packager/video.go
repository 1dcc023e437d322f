package packager

import (
	"math"
	"slices"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

func (p *Packager) writeVideo(f frame.Frame) error {
	v := p.video
	if !v.joined {
		const overlap = 100 * time.Millisecond
		if past := p.audio != nil && p.audio.open && f.PTS < p.audio.end-overlap; past || !f.Key {
			return nil // it joins with a key frame
		}
	}
	if f.Key {
		p.lag = f.PTS - f.DTS
	}
	p.uneven.came(&f)
	p.shown = max(p.shown, f.PTS+f.Duration)
	if p.startsSegment(&f) {
		if err := p.cutVideo(&f); err != nil {
			return err
		}
	}
	long := v.place(&f, p.constant, p.limit())
	later := v.ticks(f.PTS) - v.next
	if !p.constant { // a picture that comes sooner than was thought is late rather than shown before it is decoded
		later = max(later, 0)
	}
	sample := cmaf.Sample{Duration: uint32(long), CompositionOffset: int32(later), Sync: f.Key, Data: f.Data}
	if v.other {
		v.startWith(&sample, v.ticks(p.uneven.lasts(&f)))
	}
	v.add(sample)
	p.uneven.count++
	p.lookForCaptions(&f)
	if p.partIsFull(v, f.DTS) {
		v.flush()
	}
	for len(p.cuts) > 0 && p.audio != nil && v.end > p.cuts[0].at+p.arrival.patience(frame.Audio) {
		p.nextAudio()
	}
	return p.release(p.heldUntil())
}

// partIsFull closes a part with its last frame instead of the next part's first one. The frame is decoded at `at`.
func (p *Packager) partIsFull(v *track, at time.Duration) bool {
	if p.constant && p.fps > 0 {
		frame := int64(float64(v.scale) / p.fps)
		return v.pendingLong+frame > v.full() || v.endsEvenly(frame)
	}
	return v.endsUneven(&p.uneven, at)
}

// startsSegment decides whether the open segment ends before f.
func (p *Packager) startsSegment(f *frame.Frame) bool {
	v := p.video
	if !v.open {
		return true
	}
	elapsed := f.DTS - v.duration(v.first)
	limit := p.limit()
	if !f.Key {
		return elapsed+p.uneven.lasts(f) > limit || v.bytes() > maxSegmentBytes
	}
	gop := p.gop.key(f.DTS)
	return p.cut || v.bytes() > maxSegmentBytes || elapsed+gop/2 >= p.opt.Segment || elapsed+gop > limit
}

// gopMeter remembers how far apart key frames are.
type gopMeter struct {
	last, gap time.Duration
	seen      bool
}

func (g *gopMeter) key(at time.Duration) time.Duration {
	if g.seen {
		g.gap = at - g.last
	}
	g.last, g.seen = at, true
	return g.gap
}

// cutVideo ends the open segment and begins the next one with f.
func (p *Packager) cutVideo(f *frame.Frame) error {
	v := p.video
	p.cut = false
	if v.open {
		p.endVideo(f)
	} else {
		p.gop = gopMeter{}
		p.gop.key(f.DTS)
		if p.audio != nil && p.audio.open { // the audio led until now
			if err := p.leadHeld(f.PTS); err != nil {
				return err
			}
			p.followFrom(f.PTS)
		}
	}
	if err := p.join(v); err != nil {
		return err
	}
	if p.audio != nil {
		if err := p.join(p.audio); err != nil {
			return err
		}
	}
	// A cut inside a GOP may fall on a frame that others decoded after it are presented before: it is placed by
	// decoding time.
	c := p.nextCut(f.DTS + p.lag)
	// The pictures before may have been presented longer after their decoding than these are.
	small := v.ticks(max(p.opt.Lag, littleLag))
	at := v.align(v.ticks(f.DTS), small, c.Discontinuity)
	if !c.Discontinuity { // what is left of a hole belongs to the segment, which begins where the one before ends
		moved := v.duration(at) - f.DTS
		c.at, c.Start = c.at+moved, c.Start.Add(moved)
	}
	v.begin(c, at)
	p.uneven.begin(f.DTS, c.Discontinuity)
	if p.audio != nil {
		p.cuts = append(p.cuts, c)
	}
	return nil
}

// endVideo ends the open segment before f.
func (p *Packager) endVideo(f *frame.Frame) {
	v := p.video
	hole := min(v.ticks(f.DTS)-v.next, v.first+v.ticks(p.limit())-v.next) // it makes no segment too long
	if hole > 0 && len(v.pending) > 0 {
		v.stand(hole, v.full())
	}
	if hole := v.ticks(f.DTS) - v.next - v.ticks(audioPatience); hole > 0 { // too much to be put in front of f
		v.next += max(0, min(hole, v.first+v.ticks(p.limit())-v.next))
	}
	v.foresee(f)
	p.uneven.end(f)
	if p.audio != nil && p.audio.open {
		p.sayTarget(max(v.elapsed(), min(f.DTS+p.lag-p.audio.from, p.limit()))) // the sound has no hole
	}
	p.cutCaptions(f.PTS)
	p.closeLead(v)
}

// followFrom ends the audio's lead at a key frame that is presented then: its segment goes on up to there, as sound may
// come that is presented before.
func (p *Packager) followFrom(at time.Duration) {
	a := p.audio
	if !a.open {
		return
	}
	// A rendition that is new begins with a segment of all, and the sound's may not last that long where it was away.
	if !slices.Contains(p.orphans, p.video) || at <= a.from || at-a.from > p.limit() {
		p.closeLead(a)
		return
	}
	p.sayTarget(at - a.from)
	for _, o := range p.orphans {
		o.gap(p.cutAt(a.from, a.mark), p.lagOf(o), at-a.from)
	}
}

// videoPart is the longest part in ticks: as many whole frames as fit into the wanted length, at least one. It is three
// frames rather than two where they last a third of a second at most: that leaves room for the delay of B-frames behind
// a discontinuity. What the playlists have said already, with an encoder of another frame rate, stays.
func (p *Packager) videoPart() int64 {
	want := (p.opt.Part - partSlack).Seconds()
	if !p.constant || p.fps <= 0 {
		want = p.opt.Part.Seconds()
		if p.fps > 0 {
			// room for frames of uneven length within 85 to 100 %,
			want = min(max(want, 7/p.fps), 1)
			// a whole number of which is in the middle of that
			want = max(math.Floor(want*p.fps*0.925), 1) / p.fps / 0.925
		}
	}
	three := want * 1.2
	if said := p.opt.Edge.PartLimit(p.video.id); said > 0 {
		want, three = min(want, (said-partSlack).Seconds()), min(three, (said-partSlack).Seconds())
	}
	if !p.constant || p.fps <= 0 {
		return int64(want * videoTimescale)
	}
	n := max(math.Floor(want*p.fps+roundingFrames), 1)
	if n == 2 && math.Floor(three*p.fps+roundingFrames) == 3 {
		n = 3
	}
	return int64(math.Round(n * videoTimescale / p.fps))
}

// roundingFrames is more than a part's length in frames loses on its way through a playlist's microseconds.
const roundingFrames = 1e-3
