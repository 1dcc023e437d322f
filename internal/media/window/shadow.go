package window

import (
	"bytes"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// A shadow is a rendition that is made of another one: it has that one's segments, parts and times. What of it is made while it is live
// comes here (Shade, Shaded); every other segment is listed as soon as its source's is whole, and made when somebody asks for it. Shadows
// are in no record: they can be made again.

// AddShadow adds a rendition made of another, unless it is there: it begins with all that there is. ErrUnknown: there is no such source.
func (e *Edge) AddShadow(id, of string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.find(id) != nil {
		return nil
	}
	src := e.lane(of)
	if src == nil {
		return ErrUnknown
	}
	d := &lane{Rendition: timeline.Rendition{ID: id, Kind: frame.Video, Timescale: src.Timescale}, of: src, from: -1, owed: -1, fresh: src.fresh}
	d.segs, d.slid = make([]segment, 0, len(src.segs)+64), src.slid
	e.shadows = append(e.shadows, d)
	e.advance(d)
	e.changed(d)
	return nil
}

// Attach says that somebody makes the shadow now, from a segment on; the playlist waits for him, within bounds.
func (e *Edge) Attach(id string, msn int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := e.shadow(id); d != nil && d.from < 0 {
		d.from = max(int(msn-e.first), 0)
		if n := len(d.segs); d.from == n-1 && d.segs[n-1].due() && !d.segs[n-1].taken && !d.segs[n-1].begun() {
			d.owed, d.from = n-1, n
		}
		e.advance(d)
		e.changed(d)
	}
}

// due says that a shadow's segment is listed, but nothing of it is made.
func (s *segment) due() bool { return s.done && !s.gap && s.size == 0 }

// begun says that a shadow's segment is due but for the parts that were published.
func (s *segment) begun() bool { return s.due() && s.hot != nil && s.hot.buf != nil }

// Detach says that nobody makes the shadow any more.
func (e *Edge) Detach(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := e.shadow(id); d != nil {
		d.from = -1
		e.excuse(d)
		e.advance(d)
		e.changed(d)
	}
}

// Forgo says that whoever makes the shadow makes nothing (more) of the segments before msn.
func (e *Edge) Forgo(id string, msn int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := e.shadow(id); d != nil && d.from >= 0 {
		d.from = max(d.from, int(msn-e.first))
		if d.owed < int(msn-e.first) {
			e.excuse(d)
		}
		e.advance(d)
	}
}

// Shade adds a part to a shadow's segment; buf is as Part's. It is the part of the same number of the source's segment, and as long. False:
// it comes too late or does not go on where the segment stands, as when another has begun it, and nothing of the segment is taken any more.
func (e *Edge) Shade(id string, msn int64, number int, buf []byte, ticks int64, independent bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, i := e.shadow(id), int(msn-e.first)
	if d == nil || e.ended {
		return false
	}
	s := d.open()
	if i == d.owed {
		return e.repay(d, number, buf)
	}
	switch {
	case s != nil && i == len(d.segs)-1:
		if i < d.from || number != int(s.parts) || !goesOn(s.hot.buf, buf, s.size) {
			return false
		}
	case s != nil || i != len(d.segs) || i >= len(d.of.segs) || d.from < 0 || i < d.from || number != 0 || len(buf) == 0:
		return false
	default:
		from := &d.of.segs[i]
		d.segs = append(d.segs, segment{
			start: from.start, time: from.time, disc: from.disc, slate: from.slate, independent: true, hot: &hot{parts: make([]part, 0, 8)},
			generation: from.generation,
		})
		d.fresh = false
		s = &d.segs[i]
	}
	s.hot.parts = append(s.hot.parts, part{off: s.size, end: int64(len(buf)), dur: ticks, independent: independent})
	s.hot.buf, s.size = buf, int64(len(buf))
	s.parts++
	s.dur += ticks
	e.changed(d)
	return true
}

// goesOn says that a buffer has what there was, and more: the first size bytes, which may have been sent, stay as they are.
func goesOn(had, buf []byte, size int64) bool {
	return int64(len(buf)) > size && int64(len(had)) >= size && bytes.Equal(had[:size], buf[:size])
}

// repay adds a part to a segment that is listed already. Called with the lock.
func (e *Edge) repay(d *lane, number int, buf []byte) bool {
	h, at := d.segs[d.owed].hot, int64(0)
	if h == nil {
		return true // the segment is wanted as a whole
	}
	for k := range h.parts {
		if p := &h.parts[k]; p.end == 0 {
			if k != number || !goesOn(h.buf, buf, at) {
				return false
			}
			p.off, p.end, h.buf = at, int64(len(buf)), buf
			d.segs[d.owed].stored = false
			d.awake()
			return true
		}
		at = h.parts[k].end
	}
	return false
}

// Shaded says that a shadow's segment is whole; false as of Shade. Its bytes are kept until Kept is called, and a little longer.
func (e *Edge) Shaded(id string, msn int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, i := e.shadow(id), int(msn-e.first)
	if d != nil && !e.ended && i == d.owed {
		if h := d.segs[i].hot; h != nil && h.buf != nil {
			d.segs[i].size, d.segs[i].stored = int64(len(h.buf)), false
		}
		d.owed = -1
		d.awake()
		return d.segs[i].size > 0
	}
	if d == nil || e.ended || d.open() == nil || i != len(d.segs)-1 || !d.of.segs[i].done {
		return false
	}
	s := d.open()
	s.done, s.dur = true, d.of.segs[i].dur
	e.changed(d)
	e.advance(d)
	return true
}

// Kept says that a shadow's segment is stored, or, with bytes of other parts, that another one is in its place.
func (e *Edge) Kept(id string, msn int64, same bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, i := e.shadow(id), int(msn-e.first)
	if d == nil || i < 0 || i >= len(d.segs) {
		return
	}
	if s := &d.segs[i]; same {
		s.stored = true
	} else if s.done {
		s.size, s.stored = 0, true
		if s.hot != nil {
			s.hot.buf = nil
			for k := range s.hot.parts {
				s.hot.parts[k].off, s.hot.parts[k].end = 0, 0
			}
		}
	}
	e.trim(d)
}

// Begun is what was published of a shadow's segment whose maker has left it.
type Begun struct {
	ID   string
	MSN  int64
	Data []byte // whole parts
}

// Begun gives what was left since it was called last: whoever makes the rest of such a segment later has to go on behind it. It is kept until
// Kept says that another one has it. more says that some may come without anybody's doing.
func (e *Edge) Begun() (all []Begun, more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all, e.begun = e.begun, nil
	for _, d := range e.shadows {
		more = more || d.open() != nil && (d.from < 0 || d.from >= len(d.segs))
	}
	return all, more
}

// Head is what was published of a shadow's segment that has to be made now; nil: nothing was, or Kept has been called.
func (e *Edge) Head(id string, msn int64) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	d, i := e.shadow(id), int(msn-e.first)
	if d == nil || i < 0 || i >= len(d.segs) || !d.segs[i].begun() {
		return nil
	}
	return d.segs[i].hot.buf
}

// excuse has nobody make the shadow's listed segment any more. Called with the lock.
func (e *Edge) excuse(d *lane) {
	i := d.owed
	if i < 0 {
		return
	}
	if d.owed = -1; d.segs[i].begun() {
		e.begun = append(e.begun, Begun{d.ID, e.first + int64(i), d.segs[i].hot.buf})
	}
	d.awake()
}

// PartEnds are how many samples a segment has up to the end of each of its parts, in a shadow its source's; nil when that is not known any
// more.
func (e *Edge) PartEnds(rendition string, msn int64) []int {
	e.mu.Lock()
	defer e.mu.Unlock()
	l, i := e.find(rendition), int(msn-e.first)
	if l == nil || i < 0 || i >= len(l.segs) || l.segs[i].hot == nil {
		return nil
	}
	var ends []int
	count := 0
	for _, p := range l.segs[i].hot.parts {
		if p.samples == 0 {
			return nil
		}
		count += p.samples
		ends = append(ends, count)
	}
	return ends
}

// shadow finds a shadow.
func (e *Edge) shadow(id string) *lane {
	for _, d := range e.shadows {
		if d.ID == id {
			return d
		}
	}
	return nil
}

// find finds what can be watched: a rendition or a shadow.
func (e *Edge) find(id string) *lane {
	if l := e.lane(id); l != nil {
		return l
	}
	return e.shadow(id)
}

// shade has the shadows of a rendition follow it. Called with the lock.
func (e *Edge) shade(l *lane) {
	for _, d := range e.shadows {
		if d.of == l {
			e.advance(d)
		}
	}
}

// awaited says that a segment of a shadow, whole in its source, is waited for: until the source's next one is half as long as the target
// duration, and if some of it was published, until that is whole. Called with the lock.
func (e *Edge) awaited(d *lane, i int) bool {
	if d.from < 0 || i < d.from || d.of.segs[i].gap || e.ended || len(d.of.segs)-i > 2 {
		return false
	}
	begun := i < len(d.segs) && d.segs[i].parts > 0
	return begun || len(d.of.segs)-i == 1 || d.of.duration(d.of.segs[i+1].dur) <= time.Duration(e.target)*time.Second/2
}

// longOwed is how many segments behind the edge one is that nobody will make any more as those from there on are.
const longOwed = 3

// advance lists the source's whole segments that nobody makes, and those that whoever makes the shadow is late with. Such a segment is made
// later, behind the parts of it that were published, and its other parts are cut from that. Called with the lock.
func (e *Edge) advance(d *lane) {
	moved := false
	if e.ended || len(d.of.segs)-d.owed > longOwed {
		e.excuse(d)
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
		if e.awaited(d, i) {
			break
		}
		s := segment{
			start: from.start, time: from.time, dur: from.dur, disc: from.disc, slate: from.slate, gap: from.gap, lost: from.lost,
			independent: !from.gap, done: true, stored: true, generation: from.generation,
		}
		if from.hot != nil && !from.gap && !from.hot.bare { // its parts can't be made as the source's are
			s.hot, s.parts = &hot{parts: make([]part, len(from.hot.parts))}, from.parts
			for k := range from.hot.parts {
				s.hot.parts[k] = part{dur: from.hot.parts[k].dur, samples: from.hot.parts[k].samples, independent: k == 0}
			}
		}
		if had := d.open(); had != nil {
			e.keepHead(d, had, &s)
		}
		d.segs = append(d.segs[:i], s)
		d.fresh, moved = false, true
	}
	if moved {
		e.trim(d)
		e.changed(d)
	}
}

// keepHead has the segment that is listed now begin with the parts of it that were published: players have them. Called with the lock.
func (e *Edge) keepHead(d *lane, had, s *segment) {
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
	e.begun = append(e.begun, Begun{d.ID, e.first + int64(len(d.segs)) - 1, had.hot.buf})
}

// loseShade is lose for what would have been made of segment i. Called with the lock.
func (e *Edge) loseShade(l *lane, i int) {
	for _, d := range e.shadows {
		if d.of == l && i < len(d.segs) && d.segs[i].due() {
			d.segs[i].lost = true
		}
	}
}

// gapShade makes the shadows' segments gaps whose source's has become one. Called with the lock.
func (e *Edge) gapShade(l *lane, i int) {
	for _, d := range e.shadows {
		if d.of == l && i < len(d.segs) && d.segs[i].lost {
			d.segs[i].gap = true
		}
	}
}

// partTarget is a rendition's; a shadow has its source's.
func (e *Edge) partTarget(l *lane) time.Duration {
	if l.of != nil {
		l = l.of
	}
	return e.parts[l.ID]
}
