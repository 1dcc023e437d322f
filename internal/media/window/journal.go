package window

import (
	"math"
	"slices"
	"time"

	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

// noteBegin puts the open segment's beginning into the journal, with the init segments that the record does not have yet. Called with
// the lock; it does not wait.
func (e *Edge) noteBegin(l *lane) {
	j := e.opt.Journal
	if j == nil {
		return
	}
	s, msn := l.open(), e.first+int64(len(l.segs))-1
	for k := range l.inits[:min(int(s.init)+1, len(l.inits))] {
		if in := &l.inits[k]; !in.stored {
			rendition, meta := l.Rendition, in.Init
			j.Note(msn, journal.Record{Init: &meta, Rendition: &rendition, Number: k}, in.data)
		}
	}
	j.Note(msn, journal.Record{
		Begin: l.ID, Start: s.start, Discontinuity: s.disc, Slate: s.slate, Use: int(s.init), Time: s.time, Target: e.target,
	}, nil)
	s.hot.media = j.Media(msn, l.ID)
}

// notePart puts a part into the journal before it is published, if the disk is quick. Called without the lock.
func (e *Edge) notePart(rendition string, buf []byte, ticks int64, independent bool) {
	var media *journal.Media
	var from int64
	if e.journalled(rendition, func(l *lane) { media, from = l.open().hot.media, l.open().size }) {
		e.opt.Journal.Part(media, buf[from:], ticks, independent)
	}
}

// noteEnd puts the end of the open segment into the journal before it is listed, if the disk is quick. Called without the lock.
func (e *Edge) noteEnd(rendition string, ticks int64) {
	var msn int64
	var end journal.Record
	if e.journalled(rendition, func(l *lane) { msn, end = e.endOf(l, ticks) }) {
		e.opt.Journal.End(msn, end)
	}
}

// journalled says whether a rendition has an open segment that is to be in a journal, and has it looked at with the lock.
func (e *Edge) journalled(rendition string, look func(l *lane)) bool {
	if e.opt.Journal == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lane(rendition)
	if e.ended || l == nil || l.open() == nil {
		return false
	}
	look(l)
	return true
}

// endOf says that the open segment ends. Called with the lock.
func (e *Edge) endOf(l *lane, ticks int64) (msn int64, r journal.Record) {
	return e.first + int64(len(l.segs)) - 1, journal.Record{End: l.ID, Duration: max(l.open().dur, ticks), Target: e.target}
}

// takeOver adds what an earlier process left in the journal behind what was recorded: segments that were whole, and of one that was
// not, the parts that every rendition has, or all of what was whole in one of them. What can not follow is deleted.
func (e *Edge) takeOver(j *journal.Journal) {
	whole := true
	for s := range j.Left {
		n := 0
		if len(e.lanes) > 0 {
			n = len(e.lanes[0].segs)
		}
		if s.MSN < e.first+int64(n) { // recorded before the process could delete it
			j.Forget(s.MSN)
			continue
		}
		// Behind a segment that was cut short only another publication may follow: it begins with a discontinuity.
		follows := whole || slices.ContainsFunc(s.Lanes, func(l *journal.Lane) bool { return l.Discontinuity })
		if !follows || s.MSN > e.first+int64(n) || !e.adopt(s, n, &whole) {
			e.opt.Logger.Warn("parts of a segment are lost: what comes before them was not kept", "media", e.opt.Media, "msn", s.MSN)
			j.Forget(s.MSN)
			whole = false
			continue
		}
		e.opt.Logger.Info("segment recovered from the part journal", "media", e.opt.Media, "msn", s.MSN, "whole", whole)
	}
	e.seal()
}

// adopt makes segment n of what a journal holds; false when nothing of it is of use. whole tells whether all of it was.
func (e *Edge) adopt(s *journal.Segment, n int, whole *bool) bool {
	if e.target == 0 {
		e.target = s.Target
	}
	for _, from := range s.Lanes {
		if !e.declare(from, n) {
			return false
		}
	}
	*whole = e.cut(s, n)
	if !slices.ContainsFunc(s.Lanes, func(l *journal.Lane) bool { return len(l.Parts) > 0 }) {
		return false
	}
	longest := (*lane)(nil)
	for _, from := range s.Lanes {
		if len(from.Parts) == 0 {
			continue
		}
		l := e.lane(from.ID)
		l.segs = append(l.segs, segment{
			start: from.Start, time: from.Time, dur: from.Ticks(), size: int64(len(from.Data)), hot: &hot{buf: from.Data}, init: int32(from.Use),
			disc: from.Discontinuity, slate: from.Slate, independent: from.Parts[0].Independent, done: true,
		})
		l.rate.Add(int64(len(from.Data)), from.Ticks(), l.Timescale, e.target)
		if longest == nil {
			longest = l
		}
	}
	for _, l := range e.lanes {
		l.backfill(longest)
	}
	return true
}

// declare makes the rendition and the init segments that a journal names, unless they are known.
func (e *Edge) declare(from *journal.Lane, n int) bool {
	l := e.lane(from.ID)
	if l == nil {
		if from.Rendition == nil {
			return false
		}
		l = &lane{Rendition: *from.Rendition}
		if len(e.lanes) > 0 {
			l.backfill(e.lanes[0])
		}
		e.lanes = append(e.lanes, l)
		if l.PartTarget > 0 {
			e.parts[l.ID] = time.Duration(l.PartTarget) * time.Microsecond
		}
	}
	for _, in := range from.Inits {
		if in.Number == len(l.inits) {
			l.inits = append(l.inits, initSegment{Init: in.Init, data: in.Data})
		}
	}
	return len(l.segs) == n && (!from.Begun || from.Use < len(l.inits) || len(from.Parts) == 0)
}

// cut drops the parts that not every rendition has, and tells whether the segment was whole. Where one rendition's was, players may have it
// listed as a segment: nothing is dropped then, and the others end a little sooner.
func (e *Edge) cut(s *journal.Segment, n int) (whole bool) {
	end, listed, absent := math.Inf(1), false, false
	for _, l := range e.lanes {
		switch from := s.Lane(l.ID); {
		case from != nil && from.Whole:
			listed = true
		case from != nil && len(from.Parts) > 0:
			end = min(end, seconds(from.Time+from.Ticks(), l.Rendition))
		case from != nil && from.Begun || l.expected(s, n):
			absent = true
		}
	}
	switch {
	case math.IsInf(end, 1) && !absent:
		return true
	case listed:
		return false
	case absent:
		s.Clear()
		return false
	}
	const slack = 0.001
	for _, from := range s.Lanes {
		l, at, keep := e.lane(from.ID), from.Time, 0
		for keep < len(from.Parts) && seconds(at, l.Rendition) < end-slack {
			at += from.Parts[keep].Ticks
			keep++
		}
		from.Keep(keep)
	}
	return false
}

// expected says that a rendition of which a segment has nothing was about to have media in it: it had some before, and nothing new
// begins.
func (l *lane) expected(s *journal.Segment, n int) bool {
	return n > 0 && !l.segs[n-1].gap && !slices.ContainsFunc(s.Lanes, func(o *journal.Lane) bool { return o.Discontinuity })
}

func seconds(ticks int64, r timeline.Rendition) float64 { return float64(ticks) / float64(r.Timescale) }
