package packager

import (
	"math"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

func (p *Packager) writeVideo(f frame.Frame) error {
	v := p.video
	if !v.joined && !f.Key {
		return nil // it joins with a key frame
	}
	if f.Key {
		p.lag = f.PTS - f.DTS
	}
	if p.startsSegment(&f) {
		if err := p.cutVideo(&f); err != nil {
			return err
		}
	}
	at, end := v.ticks(f.DTS), v.ticks(f.DTS+f.Duration)
	if hole := at - v.next; hole > 0 && len(v.pending) > 0 {
		// Something was lost: the picture before stands until this one.
		v.pending[len(v.pending)-1].Duration += uint32(hole)
		v.pendingLong += hole
		v.next += hole
	}
	// Behind a part that is out already the hole is put in front: decoded early, presented in time.
	sample := cmaf.Sample{Duration: uint32(max(end-v.next, 1)), CompositionOffset: int32(v.ticks(f.PTS) - v.next), Sync: f.Key, Data: f.Data}
	if len(v.pending) > 0 && v.pendingLong+int64(sample.Duration) > v.partTarget+v.ticks(partSlack) {
		v.flush()
	}
	v.add(sample)
	if p.partIsFull(v) {
		v.flush()
	}
	for len(p.cuts) > 0 && p.audio != nil && v.end > p.cuts[0].at+audioPatience {
		p.nextAudio()
	}
	return p.release(p.heldUntil())
}

// partIsFull closes a part with its last frame instead of the next part's first one.
func (p *Packager) partIsFull(v *track) bool {
	if p.constant && p.fps > 0 {
		return v.pendingLong+int64(float64(v.scale)/p.fps) > v.partTarget+v.ticks(partSlack)
	}
	return v.pendingLong*100 >= v.partTarget*85
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
		return elapsed+f.Duration > limit || len(v.buf) > maxSegmentBytes
	}
	gop := p.gop.key(f.DTS)
	return elapsed+gop/2 >= p.opt.Segment || elapsed+gop > limit
}

// gopMeter remembers how far apart key frames are.
type gopMeter struct {
	last, gap time.Duration
	seen      bool
}

func (m *gopMeter) key(at time.Duration) time.Duration {
	if m.seen {
		m.gap = at - m.last
	}
	m.last, m.seen = at, true
	return m.gap
}

// cutVideo ends the open segment and begins the next one with f.
func (p *Packager) cutVideo(f *frame.Frame) error {
	v := p.video
	if v.open {
		p.settleTargets(v)
		v.finish()
		p.closeOrphans(v)
	} else {
		p.gop = gopMeter{}
		p.gop.key(f.DTS)
		if p.audio != nil && p.audio.open { // the audio led until now
			p.audio.finish()
			p.closeOrphans(p.audio)
		}
	}
	if err := p.joinAll(); err != nil {
		return err
	}
	if v.partTarget == 0 {
		v.partTarget = p.videoPart()
	}
	// A cut inside a GOP may fall on a frame that others decoded after it are presented before: it is placed by decoding time.
	c := p.mark(f.DTS+p.lag, p.disc)
	p.disc = false
	v.begin(c, v.align(v.ticks(f.DTS)))
	if p.audio != nil {
		p.cuts = append(p.cuts, c)
	}
	return nil
}

// joinAll lets what is configured take part from here on: between two segments of every rendition.
func (p *Packager) joinAll() error {
	if err := p.video.prepare(p.fps); err != nil {
		return err
	}
	p.join(p.video)
	if p.audio == nil {
		return nil
	}
	if err := p.audio.prepare(0); err != nil {
		return err
	}
	p.join(p.audio)
	return nil
}

// videoPart is the longest part in ticks: as many whole frames as fit into the wanted length, at least one. What the playlists have
// said already, with an encoder of another frame rate, stays.
func (p *Packager) videoPart() int64 {
	want := (p.opt.Part - partSlack).Seconds()
	if !p.constant || p.fps <= 0 {
		want = p.opt.Part.Seconds()
		if p.fps > 0 {
			want = min(max(want, 7/p.fps), 1) // room for frames of uneven length within 85 to 100 %
		}
	}
	if said := p.opt.Edge.PartLimit(p.video.id); said > 0 {
		want = min(want, (said - partSlack).Seconds())
	}
	if !p.constant || p.fps <= 0 {
		return int64(want * videoTimescale)
	}
	n := max(math.Floor(want*p.fps+roundingFrames), 1)
	return int64(math.Round(n * videoTimescale / p.fps))
}

// roundingFrames is more than a part's length in frames loses on its way through a playlist's microseconds.
const roundingFrames = 1e-3

// settleTargets says the constants of the playlists when the first segment ends.
func (p *Packager) settleTargets(lead *track) {
	least := int(p.opt.Segment / time.Second)
	parts := map[string]time.Duration{lead.id: lead.duration(lead.partTarget) + partSlack}
	if p.audio != nil && p.audio.partTarget > 0 {
		parts[timeline.MainAudio] = p.audio.duration(p.audio.partTarget) + audioSlack
	}
	p.opt.Edge.Target(max(least, int(math.Ceil(lead.elapsed().Seconds()-0.1))), parts)
}
