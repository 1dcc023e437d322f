package packager

import (
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// followAudio packs a frame into the segment that the video's cuts put it in.
func (p *Packager) followAudio(f frame.Frame) {
	a := p.audio
	for len(p.cuts) > 0 && f.PTS >= p.cuts[0].at {
		p.nextAudio()
	}
	if a.wait != nil {
		a.begin(*a.wait, a.align(a.ticks(f.DTS)))
	}
	if a.open { // else it is presented before the first segment
		p.addAudio(f)
	}
}

// nextAudio ends the current audio segment and makes the next cut the current one.
func (p *Packager) nextAudio() {
	c := p.cuts[0]
	p.cuts = p.cuts[1:]
	p.audio.conclude(c.at)
	p.audio.wait = &c
}

// addAudio appends a frame to the open segment.
func (p *Packager) addAudio(f frame.Frame) {
	a := p.audio
	long := a.ticks(f.Duration)
	if a.partTarget == 0 {
		a.partTarget = p.audioPart(long)
	}
	full := a.partTarget + a.ticks(audioSlack)
	if hole := a.ticks(f.DTS) - a.next; hole > 2 && len(a.pending) > 0 { // samples were lost
		a.pending[len(a.pending)-1].Duration += uint32(hole)
		a.pendingLong += hole
		a.next += hole
	}
	// A hole behind a part that is out already is put behind this frame instead of in front of it.
	s := cmaf.Sample{Duration: uint32(max(a.ticks(f.DTS+f.Duration)-a.next, 1)), Sync: true, Data: f.Data}
	if len(a.pending) > 0 && a.pendingLong+int64(s.Duration) > full {
		a.flush()
	}
	a.add(s)
	if a.pendingLong+long > full {
		a.flush()
	}
}

// audioPart is the longest part in ticks: whole frames of `long` ticks. What the playlists have said already, with an encoder of
// another sample rate, stays.
func (p *Packager) audioPart(long int64) int64 {
	want := p.opt.Part
	if said := p.opt.Edge.PartLimit(p.audio.id); said > 0 {
		want = min(want, said-audioSlack)
	}
	frames := int64(want.Seconds()*float64(p.audio.scale)/float64(long) + roundingFrames)
	return max(frames, 1) * long
}

// leadAudio cuts a publication without video by length.
func (p *Packager) leadAudio(f frame.Frame) error {
	a := p.audio
	if a.open && (a.elapsed()+f.Duration/2 >= p.opt.Segment || len(a.buf) > maxSegmentBytes) {
		p.settleTargets(a)
		a.finish()
		p.closeOrphans(a)
	}
	if !a.open {
		if err := a.prepare(0); err != nil {
			return err
		}
		p.join(a)
		c := p.mark(f.PTS, p.disc)
		p.disc = false
		a.begin(c, a.align(a.ticks(f.DTS)))
	}
	p.addAudio(f)
	return nil
}
