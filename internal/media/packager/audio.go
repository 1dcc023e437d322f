package packager

import (
	"math"

	"millrace/internal/media/codec"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// followAudio packs a frame into the segment that the video's cuts put it in.
func (p *Packager) followAudio(f frame.Frame) {
	a := p.audio
	// Other sound begins with the nearest frame.
	for len(p.cuts) > 0 && (f.PTS >= p.cuts[0].at || p.cuts[0].Discontinuity && f.PTS+f.Duration/2 >= p.cuts[0].at) {
		p.nextAudio()
	}
	if a.wait != nil && !a.passed(&f, a.wait.Discontinuity) {
		a.beginSound(*a.wait, a.align(a.ticks(f.DTS), a.ticks(f.Duration), a.wait.Discontinuity))
	}
	if a.open && !p.audioIsFull(&f) { // else it is presented before the first segment, or hopelessly late
		p.addAudio(f)
	}
}

// audioIsFull reports whether f would make the open segment longer than the target duration allows.
func (p *Packager) audioIsFull(f *frame.Frame) bool {
	return p.audio.open && p.audio.elapsed()+f.Duration > p.limit()+soundSlack
}

// nextAudio ends the current audio segment and makes the next cut the current one.
func (p *Packager) nextAudio() {
	c := p.cuts[0]
	p.cuts = p.cuts[1:]
	p.audio.conclude(c.at, p.limit())
	p.audio.wait = &c
}

// addAudio appends a frame to the open segment.
func (p *Packager) addAudio(f frame.Frame) {
	a := p.audio
	p.sound = f.Duration
	long := a.ticks(f.Duration)
	// What was said, perhaps for frames of another length: with less, a frame that lasts longer leaves a part too
	// short.
	full := a.limit
	room := max(a.room(p.limit()+soundSlack)-long, 0)                             // for what is missing
	if hole := min(a.ticks(f.DTS)-a.next, room); hole > 2 && len(a.pending) > 0 { // samples were lost
		room -= min(hole, full-a.pendingLong)
		a.stand(hole, full)
	}
	// A hole behind a part that is out already or full is put behind this frame instead of in front of it, and behind
	// the next ones where that would make this one's part longer than said.
	lasts := min(max(a.ticks(f.DTS+f.Duration)-a.next, 1), full, room+long)
	s := cmaf.Sample{Duration: uint32(lasts), Sync: true, Data: f.Data}
	if len(a.pending) > 0 && a.pendingLong+int64(s.Duration) > full {
		a.flush()
	}
	a.add(s)
	if a.pendingLong+long > full {
		a.flush()
	}
}

// audioPart is the longest part in ticks, in whole frames. What the playlists have said already, with an encoder of
// another sample rate, stays.
func (p *Packager) audioPart() int64 {
	a := p.audio
	clock := codec.ClockOf(a.config)
	rate, samples := clock.Rate, clock.Length
	for _, waiting := range [...][]frame.Frame{p.held, p.early} {
		if len(waiting) > 0 { // Opus packets have the length that the encoder was set to
			samples = max(samples, clock.Samples(waiting[0].Data))
		}
	}
	want := p.opt.Part
	if said := p.opt.Edge.PartLimit(a.id); said > 0 {
		want = min(want, said-audioSlack)
	}
	frames := max(math.Floor(want.Seconds()*float64(rate)/float64(samples)+roundingFrames), 1)
	return int64(math.Ceil(frames * float64(samples) / float64(rate) * float64(a.scale)))
}

// leadAudio cuts a publication without video by length.
func (p *Packager) leadAudio(f frame.Frame) error {
	a := p.audio
	if a.open && (a.elapsed()+f.Duration/2 >= p.opt.Segment || a.bytes() > maxSegmentBytes) {
		p.closeLead(a)
	}
	if !a.open {
		if a.passed(&f, p.disc) {
			return nil
		}
		if err := p.join(a); err != nil {
			return err
		}
		c := p.nextCut(f.PTS)
		a.beginSound(c, a.align(a.ticks(f.DTS), a.ticks(f.Duration), c.Discontinuity))
	}
	p.addAudio(f)
	return nil
}
