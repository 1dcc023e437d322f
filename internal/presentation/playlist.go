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
func (v *recorded) Playlist(
	_ context.Context, rendition string, r playback.Reload, compressed bool,
) (playback.Text, error) {
	l := v.rendition(rendition)
	if l == nil {
		return playback.Text{}, fault.New(fault.NotFound, "there is no such rendition")
	}
	if len(v.timeline.Marks) == 0 {
		return playback.Text{}, fault.New(fault.NotReady, "the asset is being prepared: ask again in a moment")
	}
	text, err := v.list(l, r.Clip)
	if err != nil {
		return playback.Text{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	age := 1
	if v.whole {
		age = max(v.timeline.Target-1, 1)
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
func (v *recorded) list(l *timeline.Rendition, c playback.Clip) (*list, error) {
	if c != (playback.Clip{}) {
		from, to, err := v.bounds(c)
		if err != nil {
			return nil, err
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		had := v.clips[l.ID]
		if had == nil || had.from != from || had.to != to {
			had = &clipped{list{plain: v.render(l, from, to)}, from, to}
			v.clips[l.ID] = had
		}
		return &had.list, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	text := v.lists[l.ID]
	if text == nil {
		text = &list{plain: v.render(l, 0, len(l.Chunks))}
		v.lists[l.ID] = text
	}
	return text, nil
}

// bounds are within, for players: an error says that there is nothing of the clip.
func (v *recorded) bounds(c playback.Clip) (from, to int, err error) {
	from, to = v.within(c)
	switch {
	case from < to:
	case v.whole:
		err = fault.New(fault.NotFound, "there is no media in this time range")
	default:
		err = fault.New(fault.NotReady, "no media of this time range is available yet; try again later")
	}
	return from, to, err
}

// within returns the segments [from, to) that have something of a clip.
func (v *recorded) within(c playback.Clip) (from, to int) {
	const slack = 1e-6 // of float rounding
	to = len(v.timeline.Marks)
	starts := func(i int) time.Time { return v.timeline.Marks[i].Start }
	ends := func(i int) time.Time {
		return starts(i).Add(time.Duration((v.spans[i+1] - v.spans[i]) * float64(time.Second)))
	}
	for from < to && (v.spans[from+1] <= c.From+slack || !c.Begin.IsZero() && !ends(from).After(c.Begin)) {
		from++
	}
	for to > from && (c.To > 0 && v.spans[to-1] >= c.To-slack || !c.End.IsZero() && !starts(to-1).Before(c.End)) {
		to--
	}
	return from, to
}

// render lists the segments [from, to).
func (v *recorded) render(l *timeline.Rendition, from, to int) []byte {
	m := &hls.Media{
		Type: hls.VOD, TargetDuration: v.target, MediaSequence: v.timeline.First + int64(from),
		Ended: v.whole,
	}
	for i := 1; i <= from; i++ {
		if v.timeline.Marks[i].Discontinuity {
			m.DiscontinuitySequence++
		}
	}
	if !v.whole {
		m.Type = hls.Event
	}
	m.Independent = l.Kind != frame.Video || v.whole && v.timeline.Independent()
	m.Segments = make([]hls.Segment, 0, to-from)
	ext, last := "m4s", -1
	if l.Kind == frame.Text {
		ext, last = "vtt", 0
	}
	for i := from; i < to; i++ {
		c, mark := l.Chunks[i], v.timeline.Marks[i]
		s := hls.Segment{
			URI:           hls.InGeneration(mark.Generation, hls.SegmentURI(l.ID, v.timeline.First+int64(i), ext)),
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
func (v *recorded) named(l *timeline.Rendition, r hls.Resource) bool {
	if r.Init < 0 {
		t := v.timeline.Find(r.MSN)
		return t == nil || t.Marks[r.MSN-t.First].Generation == r.Generation
	}
	if tail := v.timeline.Tail; tail != nil && r.Init >= len(l.Inits) && tail.Rendition(l.ID) != nil {
		l = tail.Rendition(l.ID)
	}
	return initURI(l, r.Init) == hls.InGeneration(r.Generation, hls.InitURI(l.ID, r.Init))
}
