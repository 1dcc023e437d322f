package presentation

import (
	"context"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

type list struct{ plain, packed []byte }

// clipped is the list of the segments [from, to).
type clipped struct {
	list

	from, to int
}

// Playlist implements playback.Presentation; nothing is ever waited for here.
func (rec *recorded) Playlist(
	_ context.Context, rendition string, r playback.Reload, compressed bool,
) (playback.Text, error) {
	l := rec.rendition(rendition)
	if l == nil {
		return playback.Text{}, fault.New(fault.NotFound, "there is no such rendition")
	}
	if len(rec.timeline.Marks) == 0 {
		return playback.Text{}, fault.New(fault.NotReady, "the asset is being prepared: ask again in a moment")
	}
	text, err := rec.list(l, r.Clip)
	if err != nil {
		return playback.Text{}, err
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	age := 1
	if rec.whole {
		age = max(rec.timeline.Target-1, 1)
	}
	if !compressed {
		return playback.Text{Data: text.plain, MaxAge: age}, nil
	}
	if text.packed == nil {
		text.packed = hls.Gzip(text.plain)
	}
	return playback.Text{Data: text.packed, MaxAge: age}, nil
}

// list is a rendition's playlist. The whole one is kept, and that of a clip until it is asked for another: its viewers
// share one.
func (rec *recorded) list(l *timeline.Rendition, c playback.Clip) (*list, error) {
	if c != (playback.Clip{}) {
		from, to, err := rec.bounds(c)
		if err != nil {
			return nil, err
		}
		rec.mu.Lock()
		defer rec.mu.Unlock()
		had := rec.clips[l.ID]
		if had == nil || had.from != from || had.to != to {
			had = &clipped{list{plain: rec.render(l, from, to)}, from, to}
			rec.clips[l.ID] = had
		}
		return &had.list, nil
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	text := rec.lists[l.ID]
	if text == nil {
		text = &list{plain: rec.render(l, 0, len(l.Chunks))}
		rec.lists[l.ID] = text
	}
	return text, nil
}

// bounds are within, for players: an error says that there is nothing of the clip.
func (rec *recorded) bounds(c playback.Clip) (from, to int, err error) {
	from, to = rec.within(c)
	switch {
	case from < to:
	case rec.whole:
		err = fault.New(fault.NotFound, "there is no media in this time range")
	default:
		err = fault.New(fault.NotReady, "no media of this time range is available yet; try again later")
	}
	return from, to, err
}

// within returns the segments [from, to) that have something of a clip.
func (rec *recorded) within(c playback.Clip) (from, to int) {
	const slack = 1e-6 // of float rounding
	to = len(rec.timeline.Marks)
	starts := func(i int) time.Time { return rec.timeline.Marks[i].Start }
	ends := func(i int) time.Time {
		return starts(i).Add(time.Duration((rec.spans[i+1] - rec.spans[i]) * float64(time.Second)))
	}
	for from < to && (rec.spans[from+1] <= c.From+slack || !c.Begin.IsZero() && !ends(from).After(c.Begin)) {
		from++
	}
	for to > from && (c.To > 0 && rec.spans[to-1] >= c.To-slack || !c.End.IsZero() && !starts(to-1).Before(c.End)) {
		to--
	}
	return from, to
}

// render lists the segments [from, to).
func (rec *recorded) render(l *timeline.Rendition, from, to int) []byte {
	m := &hls.Media{
		Type: hls.VOD, TargetDuration: rec.target, MediaSequence: rec.timeline.First + int64(from),
		Ended: rec.whole,
	}
	for i := 1; i <= from; i++ {
		if rec.timeline.Marks[i].Discontinuity {
			m.DiscontinuitySequence++
		}
	}
	if !rec.whole {
		m.Type = hls.Event
	}
	m.Independent = l.Kind != frame.Video || rec.whole && rec.timeline.Independent()
	m.Segments = make([]hls.Segment, 0, to-from)
	ext, last := "m4s", -1
	if l.Kind == frame.Text {
		ext, last = "vtt", 0
	}
	for i := from; i < to; i++ {
		c, mark := l.Chunks[i], rec.timeline.Marks[i]
		s := hls.Segment{
			URI:           hls.InGeneration(mark.Generation, hls.SegmentURI(l.ID, rec.timeline.First+int64(i), ext)),
			Duration:      seconds64(c.Duration, l.Timescale),
			Discontinuity: mark.Discontinuity && i > from, Gap: c.Gap,
		}
		s.ProgramDateTime = started(mark, c)
		if c.Init != last && !c.Gap {
			s.Map, last = initURI(l, c.Init), c.Init
		}
		m.Segments = append(m.Segments, s)
	}
	return m.Append(make([]byte, 0, 256+128*len(m.Segments)))
}

// initURI is the URI of an initialization segment; those that are made when asked for are declared nowhere.
func initURI(l *timeline.Rendition, n int) string {
	generation := int64(0)
	if n < len(l.Inits) {
		generation = l.Inits[n].Generation
	}
	return hls.InGeneration(generation, hls.InitURI(l.ID, n))
}

// named reports whether a resource's name has the generation that it was published in.
func (rec *recorded) named(l *timeline.Rendition, r hls.Resource) bool {
	if r.Init < 0 {
		t := rec.timeline.Find(r.MSN)
		return t == nil || t.Marks[r.MSN-t.First].Generation == r.Generation
	}
	if tail := rec.timeline.Tail; tail != nil && r.Init >= len(l.Inits) && tail.Rendition(l.ID) != nil {
		l = tail.Rendition(l.ID)
	}
	return initURI(l, r.Init) == hls.InGeneration(r.Generation, hls.InitURI(l.ID, r.Init))
}
