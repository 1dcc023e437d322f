package window

import (
	"millrace/internal/media/journal"
)

// noteBegin puts the open segment's beginning into the journal, with the init segments that the record does not have
// yet. Called with the lock; it does not wait.
func (e *Edge) noteBegin(l *liveRendition) {
	j := e.opt.Journal
	if j == nil {
		return
	}
	s, msn := l.open(), e.first+int64(len(l.segs))-1
	for k := range l.inits[:min(int(s.init)+1, len(l.inits))] {
		if in := &l.inits[k]; !in.stored {
			rendition, meta := l.RenditionInfo, in.Init
			j.Note(msn, journal.Record{Init: &meta, Rendition: &rendition, Number: k}, in.data)
		}
	}
	j.Note(msn, journal.Record{
		Begin: l.ID, Generation: int64(s.generation), Start: s.start, Discontinuity: s.disc, Slate: s.slate,
		Use: int(s.init), Time: s.time, Target: e.target,
	}, nil)
	s.hot.media = j.Media(msn, l.ID)
}

// notePart puts a part into the journal before it is published; if the disk is slow, into memory. Called without the
// lock.
func (e *Edge) notePart(rendition string, buf []byte, ticks int64, independent bool) {
	var media *journal.Media
	var msn, from int64
	if e.journalled(rendition, func(l *liveRendition) {
		s := l.open()
		media, msn, from = s.hot.media, e.first+int64(len(l.segs))-1, s.size-s.hot.from
	}) {
		e.opt.Journal.Published(msn)
		e.opt.Journal.Part(media, buf[from:], ticks, independent)
	}
}

// noteEnd puts the end of the open segment into the journal before it is listed; if the disk is slow, into memory.
// Called without the lock.
func (e *Edge) noteEnd(rendition string, ticks int64) {
	var msn int64
	var end journal.Record
	if e.journalled(rendition, func(l *liveRendition) { msn, end = e.endOf(l, ticks) }) {
		e.opt.Journal.Published(msn)
		e.opt.Journal.End(msn, end)
	}
}

// journalled reports whether a rendition has an open segment that is to be in a journal, and calls look with the lock.
func (e *Edge) journalled(rendition string, look func(l *liveRendition)) bool {
	if e.opt.Journal == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(rendition)
	if e.ended || l == nil || l.open() == nil {
		return false
	}
	look(l)
	return true
}

// endOf returns the record of the open segment's end. Called with the lock.
func (e *Edge) endOf(l *liveRendition, ticks int64) (msn int64, r journal.Record) {
	s := l.open()
	return e.first + int64(len(l.segs)) - 1, journal.Record{
		End: l.ID, Duration: max(s.dur, ticks), Parts: int(s.parts), Target: e.target,
	}
}
