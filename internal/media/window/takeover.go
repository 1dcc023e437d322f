package window

import (
	"slices"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

// takeOver goes on where an earlier writer of the broadcast ended: with what its journal has behind what was recorded,
// and behind the last media sequence number that it can have published.
func (e *Edge) takeOver() {
	next := e.opt.Reserved
	e.reserved = next
	e.parted = e.count()
	if j := e.opt.Journal; j != nil {
		all := slices.Collect(j.Left)
		marked, known := j.Marked()
		switch {
		case known && j.Inherited(): // perhaps a part was on its way
			next = max(next, marked)
		case known:
			next = marked
		}
		lost := 0
		for i, s := range all {
			e.texts.takeOver(s.Texts)
			if e.take(j, s, behind{all[i+1:], known && marked > all[len(all)-1].MSN+1, known && marked > s.MSN}) {
				lost++
			}
		}
		if lost > 0 {
			e.opt.Logger.Warn("segments lost: they were listed, and neither the disk nor the storage has them",
				"media", e.opt.Media, "segments", lost)
		}
	}
	if len(e.renditions) > 0 {
		e.leaveOut(next)
		e.seal()
	} else {
		e.first = max(e.first, next)
	}
}

// count is how many segments there are.
func (e *Edge) count() int {
	if len(e.renditions) == 0 {
		return 0
	}
	return len(e.renditions[0].segs)
}

// behind is what was published behind a segment: what the journal has of it, and whether there was more.
type behind struct {
	segments []*journal.Segment
	more     bool
	listed   bool // players were told of the segment itself
}

// ended reports whether the process that published a segment went on behind it in a rendition, and at which tick, if
// that is known.
func (b behind) ended(s *journal.Segment, rendition string) (at int64, ok bool) {
	if l := s.Rendition(rendition); l != nil && l.Told > 0 {
		return l.Time + l.Told, true
	}
	last := s
	for _, later := range b.segments {
		if l := later.Rendition(rendition); l != nil && l.Begun && later.Generation == s.Generation {
			return l.Time, true
		}
		last = later
	}
	return 0, b.more && last.Generation == s.Generation
}

// take takes a segment over from a journal: of one that is recorded the lengths of its parts. It reports whether only
// a gap was made of it.
func (e *Edge) take(j *journal.Journal, s *journal.Segment, rest behind) (lost bool) {
	if s.MSN < e.first+int64(e.count()) {
		if !s.Stored { // recorded before the process could say so
			j.Stored(s.MSN)
		}
		e.relist(s)
		return false
	}
	s.Load()
	if s.Stored || !s.Any() && !rest.listed { // its record is gone, or nothing of it was published
		j.Forget(s.MSN)
		return false
	}
	if !e.adopt(s, rest) {
		e.opt.Logger.Warn("segment in the part journal can not be recovered: its init segment is missing", "media",
			e.opt.Media, "media_sequence", s.MSN)
		j.Forget(s.MSN)
		return false
	}
	if !s.Any() {
		return true
	}
	e.opt.Logger.Info("segment recovered from the part journal", "media", e.opt.Media,
		"media_sequence", s.MSN, "whole", s.Whole())
	return false
}

// relist gives a recorded segment its parts back.
func (e *Edge) relist(s *journal.Segment) {
	i := int(s.MSN - e.first)
	if i < 0 {
		return
	}
	for _, from := range s.Renditions {
		l := e.rendition(from.ID)
		if l == nil || len(from.Parts) == 0 || from.Parts[len(from.Parts)-1].End != l.segs[i].size {
			continue
		}
		l.segs[i].hot, l.segs[i].parts = &hot{parts: partsOf(from), bare: true}, int32(len(from.Parts))
		l.cold, e.parted = min(l.cold, i), min(e.parted, i)
	}
}

// partsOf are the parts that a journal has of a segment; the pictures in them are counted where the bytes are there.
func partsOf(from *journal.Rendition) []part {
	var out []part
	at := int64(0)
	for _, p := range from.Parts {
		x := part{off: at, end: p.End, dur: p.Ticks, independent: p.Independent}
		if p.End <= int64(len(from.Data)) {
			if fragments, err := cmaf.ParseFragments(from.Data[at:p.End]); err == nil {
				for _, f := range fragments {
					x.samples += len(f.Samples)
				}
			}
		}
		out = append(out, x)
		at = p.End
	}
	return out
}

// adopt makes the next segment of what a journal holds; what was published between it and the last one that is known is
// left out. False when nothing can be made of it. Where a rendition went on behind a segment that the disk did not take
// to its end, that was listed as a whole and given with bytes that are lost: it becomes a gap, as long as it was, and
// its parts stay for a while.
func (e *Edge) adopt(s *journal.Segment, rest behind) bool {
	if e.target == 0 {
		e.target = s.Target
	}
	if e.count() == 0 {
		e.first = s.MSN
	}
	for _, from := range s.Renditions {
		if !e.declare(from) {
			return false
		}
	}
	e.leaveOut(s.MSN)
	end := e.endOfAll(s, rest)
	longest := (*liveRendition)(nil)
	for _, from := range s.Renditions {
		l := e.rendition(from.ID)
		x := segment{
			start: from.Start, time: from.Time, dur: from.Ticks(), init: int32(from.Use), disc: from.Discontinuity,
			slate: from.Slate, done: true,
			generation: int32(s.Generation),
		}
		at, ended := rest.ended(s, from.ID)
		switch {
		case from.Told > 0 && !from.Whole:
			x.gap, x.init, x.dur = true, l.lastInit(), from.Told
			x.hot, x.parts = &hot{buf: from.Data, parts: partsOf(from)}, int32(len(from.Parts))
		case len(from.Parts) > 0 && ended && !from.Whole:
			x.gap, x.init, x.dur = true, l.lastInit(), max(x.dur, at-from.Time, end.in(l)-from.Time)
			x.hot, x.parts = &hot{buf: from.Data, parts: partsOf(from)}, int32(len(from.Parts))
		case len(from.Parts) > 0:
			x.size, x.hot, x.parts = int64(len(from.Data)), &hot{
				buf:   from.Data,
				parts: partsOf(from),
			}, int32(len(from.Parts))
			x.independent = from.Parts[0].Independent
			if !from.Whole {
				x.dur = max(x.dur, end.in(l)-from.Time)
			}
			l.rate.Add(x.size, x.dur, l.Timescale, e.target)
		case from.Whole: // a gap
			x.gap, x.init = true, l.lastInit()
		case from.Begun && rest.listed: // of what was listed of it nothing is left
			x.gap, x.init, x.dur = true, l.lastInit(), max(end.in(l)-from.Time, l.least())
		default:
			continue
		}
		l.segs = append(l.segs, x)
		longest = l
	}
	for _, l := range e.renditions {
		l.backfill(longest)
	}
	return true
}

// declare makes the rendition and the init segments that a journal names, unless they are known.
func (e *Edge) declare(from *journal.Rendition) bool {
	l := e.rendition(from.ID)
	if l == nil {
		if from.Rendition == nil {
			return false
		}
		l = &liveRendition{RenditionInfo: *from.Rendition}
		if len(e.renditions) > 0 {
			l.backfill(e.renditions[0])
		}
		e.renditions = append(e.renditions, l)
		if l.PartTarget > 0 {
			e.parts[l.ID] = time.Duration(l.PartTarget) * time.Microsecond
		}
	}
	for _, in := range from.Inits {
		if in.Number == len(l.inits) {
			l.inits = append(l.inits, initSegment{Init: in.Init, data: in.Data})
		}
	}
	return !from.Begun || from.Use < len(l.inits) || len(from.Parts) == 0
}

// moment is a place in media time.
type moment struct {
	ticks int64
	scale uint32
}

func (m moment) in(l *liveRendition) int64 {
	if m.scale == 0 {
		return 0
	}
	return rescale(m.ticks, m.scale, l.Timescale)
}

// endOfAll is where a segment ends that was cut short. Every part that is there may have been listed, and stays; the
// renditions that have less of it last as long, so that what follows finds them all at one place. One that was whole
// was listed with its length, also if that is known only by where the rendition went on.
func (e *Edge) endOfAll(s *journal.Segment, rest behind) moment {
	var listed, longest moment
	later := func(m moment, end int64, l *liveRendition) moment {
		if end > m.in(l) {
			return moment{end, l.Timescale}
		}
		return m
	}
	for _, from := range s.Renditions {
		l := e.rendition(from.ID)
		if len(from.Parts) == 0 && from.Told == 0 && from.Lost == 0 {
			continue
		}
		longest = later(longest, from.Time+max(from.Ticks(), from.Lost), l)
		if from.Whole {
			listed = later(listed, from.Time+from.Ticks(), l)
		} else if at, ended := rest.ended(s, from.ID); ended {
			listed = later(listed, at, l)
		}
	}
	if listed.scale != 0 {
		return listed
	}
	return longest
}

// shortest is how long a gap is at least.
const shortest = time.Millisecond

func (l *liveRendition) least() int64 {
	return int64(l.Timescale) * int64(shortest) / int64(time.Second)
}

// leaveOut lists the media sequence numbers before next as gaps: they were published, and nothing is left of them. A
// gap is as short as can be: media time goes on where the media ended.
func (e *Edge) leaveOut(next int64) {
	for n := e.count(); e.first+int64(n) < next; n++ {
		for _, l := range e.renditions {
			s := segment{gap: true, done: true, init: l.lastInit(), dur: l.least()}
			if n > 0 {
				before := &l.segs[n-1]
				s.time, s.generation, s.slate = before.time+before.dur, before.generation, before.slate
				if before.start != 0 {
					s.start = before.start + l.duration(before.dur).Milliseconds()
				}
			}
			l.segs = append(l.segs, s)
		}
	}
}

// Reserve tells that the media sequence numbers before next are known to the process that goes on after this one: they
// may be published.
func (e *Edge) Reserve(next int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reserved, e.short = max(e.reserved, next), false
}

// Upcoming is the first media sequence number that no player was told of, and whether more are coming.
func (e *Edge) Upcoming() (next int64, live bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	next = e.first
	for _, l := range e.renditions {
		next = max(next, e.first+int64(len(l.segs)))
	}
	return next, e.live
}

func seconds(ticks int64, r timeline.RenditionInfo) float64 {
	return float64(ticks) / float64(r.Timescale)
}
