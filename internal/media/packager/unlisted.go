package packager

import "time"

// Unlisted is how much of what was written is in the open parts, and in the open segments: what playlists don't list
// yet, of the rendition that has the least listed.
func (p *Packager) Unlisted() (part, segment time.Duration) {
	var written time.Duration
	tracks := [...]*track{p.video, p.audio}
	for _, t := range tracks {
		if t != nil && t.joined {
			written = max(written, t.end+p.lagOf(t))
		}
	}
	for _, t := range tracks {
		if t == nil || !t.joined {
			continue
		}
		behind := written - (t.end + p.lagOf(t))
		part = max(part, behind+t.duration(t.pendingLong))
		if t.open {
			behind += t.elapsed()
		}
		segment = max(segment, behind)
	}
	return part, segment
}
