package window

import (
	"slices"

	"millrace/internal/media/journal"
)

// What of derived renditions is published while they are live is in a journal of their own from then on, as their
// sources' parts are in theirs: it is made once, and who made it again would give it other bytes under the same names.
// A part that the journal can't keep is not published: it is made when it is asked for, and stored before anybody has
// it.

// derivedJournal is that journal, and what an earlier process has left in it. All but part is called with the edge's
// lock.
type derivedJournal struct {
	*journal.Journal // nil: there is none

	left      map[int64]*journal.Segment
	cleared   int // media of the segments before this one, from Edge.first on, is not needed any more,
	forgotten int // and those before this one are forgotten
}

// part puts a part into the journal before it is published, and reports whether it outlives the process there; without
// a journal nothing does. Called without the lock.
func (d *derivedJournal) part(id string, msn, generation int64, p *unpublished, ticks int64, independent bool) bool {
	if d.Journal == nil {
		return true
	}
	if p.begins {
		d.Note(msn, journal.Record{Begin: id, Generation: generation}, nil)
	}
	return d.Part(p.media, p.data, ticks, independent)
}

// cut leaves out a part that was not published after all.
func (d *derivedJournal) cut(id string, msn int64, p *unpublished) {
	if d.Journal != nil {
		d.Note(msn, journal.Record{Cut: id, Parts: p.number}, nil)
		d.PutDown(p.media)
	}
}

// whole notes that a segment is whole.
func (d *derivedJournal) whole(id string, msn int64, s *segment) {
	if d.Journal != nil && s.hot.derived != nil {
		d.Note(msn, journal.Record{End: id, Duration: s.dur, Parts: int(s.parts)}, nil)
	}
	d.putDown(s.hot)
}

// putDown has the file of a segment be closed to which nothing is added any more.
func (d *derivedJournal) putDown(h *hot) {
	if d.Journal != nil && h.derived != nil {
		d.PutDown(h.derived)
	}
}

// disown forgets what an earlier process has published of renditions that are not offered any more: nobody can ask for
// it.
func (d *derivedJournal) disown(offered func(id string) bool) {
	for _, s := range d.left {
		s.Renditions = slices.DeleteFunc(s.Renditions, func(l *journal.Rendition) bool { return !offered(l.ID) })
	}
}

// strange reports whether an earlier process has published something of renditions that are not here, or not yet.
func (d *derivedJournal) strange(here func(id string) bool) bool {
	for _, s := range d.left {
		if slices.ContainsFunc(s.Renditions, func(l *journal.Rendition) bool { return !here(l.ID) }) {
			return true
		}
	}
	return false
}

// unpublished is a part that is on its way into the journal. Its segment is neither listed nor given up meanwhile.
type unpublished struct {
	segment int // from Edge.first on
	number  int
	useless bool           // the segment is wanted as a whole
	media   *journal.Media // nil: there is no journal
	begins  bool           // nothing of the segment is in there yet
	data    []byte
}

// claim finds out where a part goes, and has its segment wait for it; false: it comes too late, or does not go on where
// the segment stands.
func (der *Derived) claim(id string, msn int64, number int, buf []byte) (d *liveRendition, p unpublished, ok bool) {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	d, p.segment, p.number = der.find(id), int(msn-e.first), number
	if d == nil || e.ended || p.segment < 0 {
		return nil, p, false
	}
	if p.useless = p.segment == d.late && d.segs[d.late].hot == nil; p.useless {
		return d, p, true
	}
	had, from, ok := d.takes(p.segment, number, buf)
	if !ok {
		return nil, p, false
	}
	p.data = buf[from:]
	if j := der.journal.Journal; j != nil {
		if had != nil {
			p.media = had.derived
		}
		if p.media == nil {
			p.begins, p.media = true, j.Media(msn, id)
		}
	}
	d.waiting = p.segment
	return d, p, true
}

// takes reports whether a buffer, up to the end of a part, goes on where segment i stands: what of it is at hand, if it
// has begun, and how many bytes of the buffer that are.
func (l *liveRendition) takes(i, number int, buf []byte) (had *hot, size int64, ok bool) {
	s := l.open()
	switch {
	case i == l.late:
		if had = l.segs[i].hot; had == nil {
			return nil, 0, false
		}
		if number > 0 && number < len(had.parts) {
			size = had.parts[number-1].end
		}
		ok = number < len(had.parts) && had.parts[number].end == 0 && (number == 0 || size > 0)
	case s != nil && i == len(l.segs)-1:
		had, size = s.hot, s.size
		ok = number == int(s.parts) && i >= l.from
	case s == nil && i == len(l.segs):
		ok = i < len(l.of.segs) && l.from >= 0 && i >= l.from && number == 0
	}
	if !ok || had == nil {
		return nil, 0, ok && len(buf) > 0
	}
	return had, size, goesOn(had.buf, buf, size)
}

// publish adds a part that is in the journal; false: it comes too late by now. Called with the lock.
func (der *Derived) publish(d *liveRendition, p *unpublished, buf []byte, ticks int64, independent bool) bool {
	e, i := der.e, p.segment
	had, from, ok := d.takes(i, p.number, buf)
	switch {
	case !ok || e.ended:
		return false
	case i == d.late:
		at := &had.parts[p.number]
		at.off, at.end, had.buf, had.derived = from, int64(len(buf)), buf, p.media
		d.segs[i].stored = false
		d.awake()
		return true
	case had == nil:
		of := &d.of.segs[i]
		had = &hot{parts: make([]part, 0, 8), derived: p.media}
		d.segs = append(d.segs, segment{
			start: of.start, time: of.time, disc: of.disc, slate: of.slate, independent: true, hot: had,
			generation: of.generation,
		})
	}
	s := &d.segs[i]
	had.parts = append(had.parts, part{off: from, end: int64(len(buf)), dur: ticks, independent: independent})
	had.buf, s.size = buf, int64(len(buf))
	s.parts++
	s.dur += ticks
	e.changed(d)
	return true
}

// generation is in which one segment i of a derived rendition is published: its source's.
func (der *Derived) generation(d *liveRendition, i int) int64 {
	der.e.mu.Lock()
	defer der.e.mu.Unlock()
	return der.e.generation(d.of, i)
}

// takeOver finds what an earlier process has published of derived renditions, and may not have stored. Called by New.
func (der *Derived) takeOver() {
	e := der.e
	k := &der.journal
	k.Journal, k.cleared, k.left = e.opt.DerivedJournal, e.count(), map[int64]*journal.Segment{}
	if k.Journal == nil {
		return
	}
	for s := range k.Left {
		i := int(s.MSN - e.first)
		if i < 0 || i >= e.count() || s.Generation != e.generation(e.renditions[0], i) || !s.Any() {
			k.Forget(s.MSN) // of a segment that is not there any more, or nothing
			continue
		}
		if !s.Stored {
			s.Load()
		}
		k.left[s.MSN] = s
		k.cleared = min(k.cleared, i)
	}
	k.forgotten = k.cleared
}

// restore has a derived rendition's segment, as it is listed, have what an earlier process has published of it. Called
// with the lock.
func (der *Derived) restore(d *liveRendition, i int, s *segment) {
	msn := der.e.first + int64(i)
	left := der.journal.left[msn]
	if left == nil {
		return
	}
	from := left.Rendition(d.ID)
	if from == nil || s.gap || len(from.Parts) == 0 {
		return
	}
	had := segment{size: from.Parts[len(from.Parts)-1].End, hot: &hot{parts: partsOf(from), buf: from.Data}}
	// it is in storage, or what it is made behind is: which parts begin with a key frame is left to say
	if left.Stored {
		for k := range had.hot.parts {
			if s.hot != nil && k < len(s.hot.parts) {
				s.hot.parts[k].independent = had.hot.parts[k].independent
			}
		}
		return
	}
	if len(from.Data) == 0 {
		return
	}
	der.keepHead(d, i, &had, s)
	if from.Whole {
		s.size = had.size
		s.hot.parts, s.parts = s.hot.parts[:len(had.hot.parts)], int32(len(had.hot.parts))
		der.begun[len(der.begun)-1].Whole = true
	}
	from.Data = nil
}

// Making tells whether somebody makes these renditions: the edge's journals are kept until all that was published is
// stored, or nobody does any more.
func (der *Derived) Making(is bool) {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	der.making = is
	e.signal()
}

// kept reports whether nothing that was published is lost with the journal. Called with the lock.
func (der *Derived) kept() bool {
	if der.journal.Journal == nil || !der.making {
		return true
	}
	return !der.journal.strange(der.has) && !slices.ContainsFunc(der.renditions, func(d *liveRendition) bool {
		return d.waiting >= 0 || slices.ContainsFunc(d.segs[d.cold:], func(s segment) bool { return !s.kept() })
	})
}

// kept reports whether nothing of a derived rendition's segment is to be stored.
func (s *segment) kept() bool {
	return s.stored || s.lost || s.gap || s.hot == nil || s.hot.buf == nil
}

// Held is how many bytes were published and are not stored yet.
func (der *Derived) Held() (bytes int) {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range der.renditions {
		for i := d.cold; i < len(d.segs); i++ {
			if s := &d.segs[i]; !s.kept() {
				bytes += len(s.hot.buf)
			}
		}
	}
	return bytes
}

// clearJournal has the journal let go of what is stored, once nobody makes more of it, and forget what nobody may ask
// for any more. Called with the lock.
func (der *Derived) clearJournal() {
	k, first := &der.journal, der.e.first
	if k.Journal == nil || len(der.renditions) == 0 || k.strange(der.has) {
		return
	}
	needed := func(d *liveRendition) bool { return k.cleared+longLate >= len(d.segs) || !d.segs[k.cleared].kept() }
	for ; !slices.ContainsFunc(der.renditions, needed); k.cleared++ {
		k.Stored(first + int64(k.cleared))
	}
	until := k.cleared
	for _, d := range der.renditions {
		until = min(until, d.cold)
	}
	for ; k.forgotten < until; k.forgotten++ {
		k.Forget(first + int64(k.forgotten))
		delete(k.left, first+int64(k.forgotten))
	}
}

// has reports whether there is such a rendition. Called with the lock.
func (der *Derived) has(id string) bool { return der.find(id) != nil }
