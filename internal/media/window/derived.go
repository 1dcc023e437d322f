package window

import (
	"bytes"
	"sync"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// Derived is the renditions at an edge that are made of another one of its renditions: they have that one's segments,
// parts and times. What of them is made while they are live is published here (AppendPart, Seal); every other segment
// is listed as soon as its source's is whole, and made when it is asked for. They are in no record: what was not
// published can be made again, and what was is in a journal of its own until it is stored.
type Derived struct {
	e          *Edge // whose lock guards what follows
	renditions []*liveRendition
	begun      []Begun // not fetched yet

	journal derivedJournal
	writing sync.Mutex // held while a part is published
	making  bool       // somebody stores what is published
}

// Derived returns the renditions that are made of others here.
func (e *Edge) Derived() *Derived { return &e.derived }

// Add adds a rendition made of another, unless it is there: it begins with all that there is. ErrUnknown: there is no
// such source.
func (der *Derived) Add(id, of string) error {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.find(id) != nil {
		return nil
	}
	src := e.rendition(of)
	if src == nil {
		return ErrUnknown
	}
	d := &liveRendition{
		RenditionInfo: timeline.RenditionInfo{ID: id, Kind: frame.Video, Timescale: src.Timescale},
		of:            src, from: -1, late: -1, waiting: -1,
	}
	d.segs, d.slid = make([]segment, 0, len(src.segs)+64), src.slid
	der.renditions = append(der.renditions, d)
	der.advance(d)
	e.changed(d)
	return nil
}

// Attach notes that an encoder makes the rendition now, from a segment on; the playlist waits for it, within bounds.
func (der *Derived) Attach(id string, msn int64) {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := der.find(id); d != nil && d.from < 0 {
		d.from = max(int(msn-e.first), 0)
		if n := len(d.segs); d.from == n-1 && d.segs[n-1].due() && !d.segs[n-1].taken && !d.segs[n-1].begun() {
			d.late, d.from = n-1, n
		}
		der.advance(d)
		e.changed(d)
	}
}

// due reports whether a derived rendition's segment is listed, but nothing of it is encoded.
func (s *segment) due() bool { return s.done && !s.gap && s.size == 0 }

// begun reports whether a derived rendition's segment is due but for the parts that were published.
func (s *segment) begun() bool { return s.due() && s.hot != nil && s.hot.buf != nil }

// Detach notes that no encoder makes the rendition any more.
func (der *Derived) Detach(id string) {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := der.find(id); d != nil {
		d.from = -1
		der.release(d)
		der.advance(d)
		e.changed(d)
	}
}

// Skip notes that the encoder makes nothing (more) of the segments before msn.
func (der *Derived) Skip(id string, msn int64) {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := der.find(id); d != nil && d.from >= 0 {
		d.from = max(d.from, int(msn-e.first))
		if d.late < int(msn-e.first) {
			der.release(d)
		}
		der.advance(d)
	}
}

// AppendPart adds a part to a rendition's segment; buf is as Part's. It is the part of the same number of the source's
// segment, and as long. It is in the journal before anybody has it, which may take as long as the journal's patience.
// It returns false when it comes too late, when the journal can't keep it, or when it does not go on where the segment
// stands, as when another encoder has begun it; then nothing of the segment is taken any more.
func (der *Derived) AppendPart(id string, msn int64, number int, buf []byte, ticks int64, independent bool) bool {
	der.writing.Lock()
	defer der.writing.Unlock()
	d, p, ok := der.claim(id, msn, number, buf)
	if !ok || p.useless {
		return ok
	}
	kept := der.journal.part(id, msn, der.generation(d, p.segment), &p, ticks, independent)
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	d.waiting = -1
	published := kept && der.publish(d, &p, buf, ticks, independent)
	if !published {
		der.journal.cut(id, msn, &p)
	}
	der.advance(d) // what has become due meanwhile
	return published
}

// goesOn reports whether a buffer has what there was, and more: the first size bytes, which may have been sent, stay as
// they are.
func goesOn(had, buf []byte, size int64) bool {
	return int64(len(buf)) > size && int64(len(had)) >= size && bytes.Equal(had[:size], buf[:size])
}

// Seal notes that a rendition's segment is whole; it returns false as AppendPart does. The bytes are kept until Stored
// is called, and a little longer.
func (der *Derived) Seal(id string, msn int64) bool {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	d, i := der.find(id), int(msn-e.first)
	if d != nil && !e.ended && i >= 0 && i == d.late {
		if h := d.segs[i].hot; h != nil && h.buf != nil {
			d.segs[i].size, d.segs[i].stored = int64(len(h.buf)), false
			der.journal.whole(id, msn, &d.segs[i])
		}
		d.late = -1
		d.awake()
		return d.segs[i].size > 0
	}
	if d == nil || e.ended || d.open() == nil || i != len(d.segs)-1 || !d.of.segs[i].done {
		return false
	}
	s := d.open()
	s.done, s.dur = true, d.of.segs[i].dur
	der.journal.whole(id, msn, &d.segs[i])
	e.changed(d)
	der.advance(d)
	return true
}

// Stored says that a derived rendition's segment is stored, or that what is in its place, or what it is made behind,
// has the bytes that were published: from storage it is read as any other that was not made live.
func (der *Derived) Stored(id string, msn int64, same bool) {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	d, i := der.find(id), int(msn-e.first)
	if d == nil || i < 0 || i >= len(d.segs) {
		return
	}
	if s := &d.segs[i]; same {
		s.stored = true
	} else if s.done {
		s.size, s.stored, s.taken = 0, true, true
		if s.hot != nil {
			s.hot.buf = nil
			for k := range s.hot.parts {
				s.hot.parts[k].off, s.hot.parts[k].end = 0, 0
			}
		}
	}
	e.trim(d)
	der.clearJournal()
	e.signal()
}

// Lost says that a derived rendition's segment can never be stored. Like a lost segment of the source, it is played
// while it is in memory and becomes a gap afterwards. Nobody makes another one in its place.
func (der *Derived) Lost(id string, msn int64) {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	d, i := der.find(id), int(msn-e.first)
	if d == nil || i < 0 || i >= len(d.segs) || d.segs[i].gap {
		return
	}
	d.segs[i].lost = true
	e.trim(d)
	der.clearJournal()
	e.signal()
}

// Begun is what was published of a derived rendition's segment whose maker has left it.
type Begun struct {
	ID    string
	MSN   int64
	Data  []byte // whole parts
	Whole bool   // there is no more of the segment: a process before this one has made it
}

// Begun gives what was left since it was called last, or by an earlier process: the rest of such a segment has to be
// made behind it. It is kept until Stored is called. more reports whether some may come without anybody's doing.
func (der *Derived) Begun() (all []Begun, more bool) {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	all, der.begun = der.begun, nil
	if len(der.renditions) > 0 || e.ended { // all that are offered are here
		der.journal.disown(der.has)
		der.clearJournal()
	}
	more = der.journal.strange(der.has)
	for _, d := range der.renditions {
		more = more || d.open() != nil && (d.from < 0 || d.from >= len(d.segs))
	}
	return all, more
}

// Head is what was published of a derived rendition's segment that has to be made now; nil: nothing was, or Stored has
// been called.
func (der *Derived) Head(id string, msn int64) []byte {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	d, i := der.find(id), int(msn-e.first)
	if d == nil || i < 0 || i >= len(d.segs) || !d.segs[i].begun() {
		return nil
	}
	return d.segs[i].hot.buf
}

// Dependent reports whether playlists list a part already, and not as one that begins with a key frame, as of a segment
// that its encoder is late with. What is listed does not change: should an encoder begin there nevertheless, in place
// of one that died, its first picture is no sync sample.
func (der *Derived) Dependent(id string, msn int64, number int) bool {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	d, i := der.find(id), int(msn-e.first)
	if d == nil || i < 0 || i >= len(d.segs) || !d.segs[i].done || d.segs[i].hot == nil {
		return false
	}
	parts := d.segs[i].hot.parts
	return number < len(parts) && !parts[number].independent
}

// release notes that no encoder makes the rendition's late segment any more. Called with the lock.
func (der *Derived) release(d *liveRendition) {
	e := der.e
	i := d.late
	if i < 0 {
		return
	}
	if d.late = -1; d.segs[i].begun() {
		der.begun = append(der.begun, Begun{ID: d.ID, MSN: e.first + int64(i), Data: d.segs[i].hot.buf})
		der.journal.putDown(d.segs[i].hot)
	}
	d.awake()
}

// PartEnds are how many samples a segment has up to the end of each of its parts, in a derived rendition its source's;
// nil when it has no parts any more. alike: nobody has counted, as a process before this one has published them; they
// are the movie fragments of the source's segment.
func (der *Derived) PartEnds(rendition string, msn int64) (ends []int, alike bool) {
	e := der.e
	e.mu.Lock()
	defer e.mu.Unlock()
	l, i := e.find(rendition), int(msn-e.first)
	if l == nil || i < 0 || i >= len(l.segs) || l.segs[i].hot == nil {
		return nil, false
	}
	count := 0
	for _, p := range l.segs[i].hot.parts {
		if p.samples == 0 {
			return nil, true
		}
		count += p.samples
		ends = append(ends, count)
	}
	return ends, false
}

// find returns a derived rendition; nil when there is no such one. Called with the lock.
func (der *Derived) find(id string) *liveRendition {
	for _, d := range der.renditions {
		if d.ID == id {
			return d
		}
	}
	return nil
}

// find returns a rendition, derived or not. Called with the lock.
func (e *Edge) find(id string) *liveRendition {
	if l := e.rendition(id); l != nil {
		return l
	}
	if d := e.derived.find(id); d != nil {
		return d
	}
	return e.texts.find(id)
}

// follow has the renditions follow one that they are made of. Called with the lock.
func (der *Derived) follow(l *liveRendition) {
	for _, d := range der.renditions {
		if d.of == l {
			der.advance(d)
		}
	}
}

// awaited reports whether a segment of a derived rendition, whole in its source, is waited for: until the source's next
// one is half as long as the target duration, and if some of it was published, until that is whole. Called with the
// lock.
func (der *Derived) awaited(d *liveRendition, i int) bool {
	e := der.e
	if d.waiting == i {
		return true
	}
	if d.from < 0 || i < d.from || d.of.segs[i].gap || e.ended || len(d.of.segs)-i > 2 {
		return false
	}
	begun := i < len(d.segs) && d.segs[i].parts > 0
	return begun || len(d.of.segs)-i == 1 || d.of.duration(d.of.segs[i+1].dur) <= time.Duration(e.target)*time.Second/2
}

// longLate is how many segments behind the edge one is that no encoder will make any more.
const longLate = 3

// advance lists the source's whole segments that no encoder makes, and those that the encoder is late with. Such a
// segment is made later, behind the parts of it that were published, and its other parts are cut from that. Called with
// the lock.
func (der *Derived) advance(d *liveRendition) {
	e := der.e
	moved := false
	if e.ended || len(d.of.segs)-d.late > longLate {
		der.release(d)
	}
	for {
		i := len(d.segs)
		if d.open() != nil {
			i--
		}
		if i >= len(d.of.segs) || !d.of.segs[i].done {
			break
		}
		from := &d.of.segs[i]
		if der.awaited(d, i) {
			break
		}
		s := segment{
			start: from.start, time: from.time, dur: from.dur, disc: from.disc, slate: from.slate, gap: from.gap,
			lost:        from.lost,
			independent: !from.gap, done: true, stored: true, generation: from.generation,
			taken: int64(from.generation) != e.opt.Generation,
		}
		if from.hot != nil && !from.gap {
			s.hot, s.parts = &hot{parts: make([]part, len(from.hot.parts))}, from.parts
			for k := range from.hot.parts {
				s.hot.parts[k] = part{
					dur: from.hot.parts[k].dur, samples: from.hot.parts[k].samples,
					independent: k == 0,
				}
			}
		}
		if had := d.open(); had != nil {
			der.keepHead(d, i, had, &s)
			der.journal.putDown(had.hot)
		} else {
			der.restore(d, i, &s)
		}
		d.segs = append(d.segs[:i], s)
		moved = true
	}
	if moved {
		e.trim(d)
		e.changed(d)
	}
}

// keepHead has segment i, which is listed now, begin with the parts of it that were published: players have them.
// Called with the lock.
func (der *Derived) keepHead(d *liveRendition, i int, had, s *segment) {
	e := der.e
	if had.size == 0 || s.gap {
		return
	}
	n := len(had.hot.parts)
	if s.hot == nil || len(s.hot.parts) < n {
		s.hot, s.parts = &hot{parts: make([]part, n)}, int32(n)
	}
	for k, p := range had.hot.parts {
		at := &s.hot.parts[k]
		at.off, at.end, at.dur, at.independent = p.off, p.end, p.dur, p.independent
	}
	if n < len(s.hot.parts) {
		s.hot.parts[n].independent = true // another encoder begins there
	}
	s.hot.buf, s.stored = had.hot.buf, false
	der.begun = append(der.begun, Begun{ID: d.ID, MSN: e.first + int64(i), Data: had.hot.buf})
}

// lose is Edge.lose for what would have been made of segment i. Called with the lock.
func (der *Derived) lose(l *liveRendition, i int) {
	for _, d := range der.renditions {
		if d.of == l && i < len(d.segs) && d.segs[i].due() {
			d.segs[i].lost = true
		}
	}
}

// gap makes the renditions' segments gaps whose source's has become one. Called with the lock.
func (der *Derived) gap(l *liveRendition, i int) {
	for _, d := range der.renditions {
		if d.of == l && i < len(d.segs) && d.segs[i].lost {
			d.segs[i].gap = true
		}
	}
}

// partTarget is a rendition's; a derived rendition has its source's.
func (e *Edge) partTarget(l *liveRendition) time.Duration {
	if l.of != nil {
		l = l.of
	}
	return e.parts[l.ID]
}
