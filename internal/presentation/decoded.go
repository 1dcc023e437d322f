package presentation

import (
	"time"

	"millrace/internal/media/delivered"
	"millrace/internal/media/timeline"
)

// decoded is what a segment is decoded with, and when its first frame was taken.
func (rec *recorded) decoded(rendition string, msn int64) (in delivered.Init, start time.Time) {
	t := rec.timeline.Find(msn)
	if t == nil {
		return in, start
	}
	l, i := rec.rendition(rendition), msn-t.First
	if t != rec.timeline { // behind the end
		l = t.Rendition(rendition)
	}
	if l == nil || i >= int64(len(l.Chunks)) {
		return in, start
	}
	c := l.Chunks[i]
	if c.Init < len(l.Inits) {
		in = delivered.Init{Number: c.Init, Generation: l.Inits[c.Init].Generation}
	}
	return in, started(t.Marks[i], c)
}

// started is when the first frame of a segment was taken in one rendition; zero: that is not known.
func started(m timeline.Mark, c timeline.Chunk) time.Time {
	if m.Start.IsZero() {
		return m.Start
	}
	return m.Start.Add(time.Duration(c.Apart) * time.Millisecond)
}
