package window

import (
	"time"

	"millrace/internal/media/hls"
	"millrace/internal/media/timeline"
)

// Covers reports whether a segment or part has something of a clip, whose seconds begin with the first segment:
// hls.Find lists no others. Initialization segments and what is not there yet are covered.
func (e *Edge) Covers(rendition string, r hls.Resource, s hls.Clip) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.find(rendition)
	lead := e.rendition(timeline.MainVideo) // sound is a little shorter or longer than the pictures that it belongs to
	if lead == nil {
		lead = l
	}
	i := r.MSN - e.first
	if lead == nil || r.Init >= 0 || i < 0 || i > int64(len(lead.segs)) {
		return true
	}
	at := int(i)
	if l != nil && r.Part >= 0 && at <= len(l.segs) { // the name may be that of the next segment's first part
		if found, _, _ := l.locate(at, r.Part); found >= 0 {
			at = found
		}
	}
	return lead.covers(at, s)
}

// covers reports whether segment i, or the one that comes next, has something of a clip. It adds up what playlists
// show.
func (l *liveRendition) covers(i int, s hls.Clip) bool {
	const slack = 1e-6 // of float rounding
	at, start, began := 0.0, time.Time{}, false
	late := func() bool { return s.To > 0 && at >= s.To-slack || !s.End.IsZero() && !start.Before(s.End) }
	for k := range l.segs[:min(i+1, len(l.segs))] {
		g := &l.segs[k]
		if g.start != 0 {
			start = time.UnixMilli(g.start)
		}
		if late() {
			return false
		}
		long := l.duration(g.dur).Round(time.Microsecond)
		at, start = at+long.Seconds(), start.Add(long)
		began = began || at > s.From+slack && (s.Begin.IsZero() || start.After(s.Begin))
	}
	if i == len(l.segs) { // it begins where the last one ends, or later
		return !late()
	}
	return began
}
