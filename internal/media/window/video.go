package window

import (
	"time"

	"millrace/internal/media/timeline"
)

// Video is what there is of the video so far, whole segments only: all of it, or what the sliding playlist holds. The
// asset's second 0 is where it begins. ErrUnknown: there is no video; ErrNotYet before one whole segment exists.
func (e *Edge) Video(listed bool) (*timeline.Timeline, error) {
	return e.video(func(l *liveRendition) (from, to int) {
		if listed {
			from = l.within(0, e.leastListed())
		}
		return from, len(l.segs)
	})
}

// VideoAround is what there is of the video around a segment, so many segments on each side, whole ones only; around
// the newest one where msn is less than 0. It costs the same however long the recording is.
func (e *Edge) VideoAround(msn int64, segments int) (*timeline.Timeline, error) {
	return e.video(func(l *liveRendition) (from, to int) {
		n := len(l.segs)
		i := n - 1
		if msn >= 0 {
			i = int(min(max(msn-e.first, 0), int64(n)))
		}
		return max(i-segments, 0), min(i+segments+1, n)
	})
}

// video is what pick picks of the video.
func (e *Edge) video(pick func(l *liveRendition) (from, to int)) (*timeline.Timeline, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sealed == 0 {
		return nil, ErrNotYet
	}
	l := e.rendition(timeline.MainVideo)
	if l == nil {
		return nil, ErrUnknown
	}
	from, to := pick(l)
	t := &timeline.Timeline{First: e.first + int64(from), Target: e.target}
	out := &timeline.Rendition{RenditionInfo: l.RenditionInfo}
	for i := range l.inits {
		out.Inits = append(out.Inits, l.inits[i].Init)
	}
	for i := from; i < to && l.segs[i].done; i++ {
		s := &l.segs[i]
		m := timeline.Mark{Discontinuity: s.disc, Slate: s.slate, Generation: int64(s.generation)}
		if s.start != 0 {
			m.Start = time.UnixMilli(s.start).UTC()
		}
		t.Marks = append(t.Marks, m)
		out.Chunks = append(out.Chunks, timeline.Chunk{
			Rendition: l.ID, Init: int(s.init), Time: s.time, Duration: s.dur, Size: s.size, Independent: s.independent,
			Gap: s.gap,
		})
	}
	if len(out.Chunks) > 0 && from > 0 {
		t.Zero = seconds(out.Chunks[0].Time, l.RenditionInfo)
	}
	t.Renditions = []*timeline.Rendition{out}
	return t, nil
}

// Inits is how many init segments a rendition has had; 0 before one whole segment exists.
func (e *Edge) Inits(rendition string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(rendition)
	if l == nil || e.sealed == 0 {
		return 0
	}
	return len(l.inits)
}

// FirstInit is the init segment that a rendition began with, also before one whole segment exists; false: it has none.
func (e *Edge) FirstInit(rendition string) (timeline.Init, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(rendition)
	if l == nil || len(l.inits) == 0 {
		return timeline.Init{}, false
	}
	return l.inits[0].Init, true
}

// NewestKey is the newest segment of the video that begins with a key frame, as far as it goes, with the number of its
// init segment. ErrNotYet: there is none.
func (e *Edge) NewestKey() (p Location, init int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(timeline.MainVideo)
	if l == nil {
		return Location{}, 0, ErrUnknown
	}
	for i := len(l.segs) - 1; i >= 0; i-- {
		s := &l.segs[i]
		if s.gap || !s.independent || s.parts == 0 {
			continue
		}
		p = Location{Object: e.key(l.ID, e.first+int64(i)), N: s.size}
		switch {
		case s.written():
			p.File = s.hot.media
		case s.hot != nil && s.hot.buf != nil:
			s.hot.locate(&p)
		case !s.stored:
			continue
		}
		return p, int(s.init), nil
	}
	return Location{}, 0, ErrNotYet
}
