package packager

import (
	"time"

	"millrace/internal/media/timeline"
)

// cut is where a segment begins, for those that follow.
type cut struct {
	at time.Duration // media time of presentation
	timeline.Mark
}

// Cut has the next key frame begin a segment, whatever the last one's length: what comes is cut differently, and may
// be slate, which stands in for an encoder that is away.
func (p *Packager) Cut(slate bool) { p.cut, p.slate = true, slate }

// nextCut is the segment that begins at media time at, of what comes now.
func (p *Packager) nextCut(at time.Duration) cut {
	m := timeline.Mark{Discontinuity: p.disc, Slate: p.slate}
	p.disc = false
	return p.cutAt(at, m)
}

// cutAt is a segment like m that begins at media time at.
func (p *Packager) cutAt(at time.Duration, m timeline.Mark) cut {
	m.Start = p.wall.Add(at)
	return cut{at, m}
}
