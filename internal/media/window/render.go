package window

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"time"

	"millrace/internal/media/hls"
)

// listing is one of the playlists of a rendition.
type listing struct{ event, skip bool }

// rendered is a playlist's text, kept until the edge changes.
type rendered struct {
	version uint64
	text    []byte
	packed  []byte
}

// prefix is the text of the segments of the EVENT playlist that will never change again.
type prefix struct {
	text  []byte
	count int // segments from the first on
}

func (r *rendered) bytes(compressed bool) ([]byte, error) {
	if !compressed {
		return r.text, nil
	}
	if r.packed == nil {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // the level is valid
		if _, err := w.Write(r.text); err != nil {
			return nil, fmt.Errorf("compress playlist: %w", err)
		}
		if err := w.Close(); err != nil {
			return nil, fmt.Errorf("compress playlist: %w", err)
		}
		r.packed = b.Bytes()
	}
	return r.packed, nil
}

// rendered gives a playlist, rendering it once per change and only when somebody asks. Called with the lock.
func (e *Edge) rendered(l *lane, k listing) *rendered {
	if r := l.text[k]; r != nil && r.version == e.version {
		return r
	}
	if l.text == nil {
		l.text = map[listing]*rendered{}
	}
	m := e.media(l, k)
	r := &rendered{version: e.version, text: m.Append(make([]byte, 0, 4096+len(m.Rendered)))}
	l.text[k] = r
	return r
}

func (e *Edge) media(l *lane, k listing) *hls.Media {
	m := &hls.Media{TargetDuration: e.target, Ended: e.ended, MediaSequence: e.first}
	low := e.opt.Mode.Low
	if low && !e.ended {
		m.CanBlock = true
		m.PartTarget = e.parts[l.ID]
		m.SkipUntil = time.Duration(6*e.target) * time.Second
	}
	from := 0
	switch {
	case k.event && e.ended:
		m.Type = hls.VOD
	case k.event:
		m.Type = hls.Event
	default:
		from = e.windowStart(l, m)
	}
	if k.event && !k.skip {
		from = l.settle(e)
		m.Rendered = l.event.text
	}
	behind := l.behind(from)
	if k.skip && !e.ended {
		if n := l.skippable(from, behind, m.SkipUntil); n > 0 {
			m.Skipped, m.Segments = n+len(m.Segments), nil // leading gaps are older still
			from, behind = from+n, behind[n:]
		}
	}
	e.list(l, m, from, behind)
	if !e.ended && m.PartTarget > 0 {
		e.announce(l, m)
	}
	return m
}

// list adds the segments from `from` on, the newest with their parts.
func (e *Edge) list(l *lane, m *hls.Media, from int, behind []time.Duration) {
	partsWithin := time.Duration(3*e.target) * time.Second
	atFront := m.Skipped == 0 && len(m.Rendered) == 0 && len(m.Segments) == 0
	for i := from; i < len(l.segs); i++ {
		s := l.segs[i]
		seg := l.describe(i, atFront && i == from)
		if m.PartTarget > 0 && behind[i-from] < partsWithin {
			seg.Parts = l.listParts(s)
		}
		if s.done {
			m.Segments = append(m.Segments, seg)
		} else if len(seg.Parts) > 0 {
			m.Open = &seg
		}
	}
}

// windowStart picks the first listed segment of the sliding playlist and puts the leading gaps in front of it.
func (e *Edge) windowStart(l *lane, m *hls.Media) int {
	least := max(e.opt.Mode.Listed, time.Duration(7*e.target)*time.Second)
	var sum time.Duration
	from := len(l.segs)
	for from > 0 && sum < least {
		from--
		if l.segs[from].done {
			sum += l.duration(l.segs[from].dur)
		}
	}
	for ; l.slid.count < from; l.slid.count++ {
		if l.segs[l.slid.count].disc && l.slid.count > 0 {
			l.slid.discontinuities++
		}
	}
	m.DiscontinuitySequence = l.slid.discontinuities
	m.MediaSequence = e.first + int64(from)
	if from > 0 || e.ended {
		return from
	}
	gap := time.Duration(e.target) * time.Second
	for n := e.opt.Mode.Leading; n > 0 && sum < least; n-- {
		sum += gap
		m.MediaSequence--
		seg := hls.Segment{URI: hls.SegmentURI(l.ID, m.MediaSequence, "m4s"), Duration: gap, Gap: true}
		m.Segments = append([]hls.Segment{seg}, m.Segments...)
	}
	if len(m.Segments) > 0 {
		m.Segments[0].Map = hls.InitURI(l.ID, l.segs[0].init)
	}
	return from
}

// behind is, for each segment from `from` on, how long the playlist goes on after its end.
func (l *lane) behind(from int) []time.Duration {
	out := make([]time.Duration, len(l.segs)-from)
	var sum time.Duration
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = sum
		sum += l.duration(l.segs[from+i].dur)
	}
	return out
}

// skippable counts the segments from `from` on that lie wholly behind the skip boundary, section 4.4.3.8.
func (l *lane) skippable(from int, behind []time.Duration, boundary time.Duration) int {
	n := 0
	for n < len(behind) && l.segs[from+n].done && behind[n] >= boundary {
		n++
	}
	return n
}

// settle moves segments whose text can not change any more into the kept prefix and returns the first one behind it.
func (l *lane) settle(e *Edge) int {
	old := time.Duration(4*e.target) * time.Second
	p := &l.event
	for _, rest := range l.behind(p.count) {
		if rest < old || !l.segs[p.count].done {
			break
		}
		seg := l.describe(p.count, p.count == 0)
		p.text = hls.AppendSegment(p.text, &seg)
		p.count++
	}
	return p.count
}

func (l *lane) describe(i int, first bool) hls.Segment {
	s := l.segs[i]
	seg := hls.Segment{
		URI: hls.SegmentURI(l.ID, s.msn, "m4s"), Duration: l.duration(s.dur), ProgramDateTime: s.start,
		Discontinuity: s.disc && i > 0, Gap: s.gap,
	}
	if first || l.segs[max(i-1, 0)].init != s.init {
		seg.Map = hls.InitURI(l.ID, s.init)
	}
	return seg
}

func (l *lane) listParts(s *segment) []hls.Part {
	out := make([]hls.Part, len(s.parts))
	for k, p := range s.parts {
		out[k] = hls.Part{URI: hls.PartURI(l.ID, s.msn, k), Duration: l.duration(p.dur), Independent: p.independent}
	}
	return out
}

// announce adds the preload hint and the rendition reports.
func (e *Edge) announce(l *lane, m *hls.Media) {
	if e.live {
		if s := l.open(); s != nil {
			m.Hint = hls.PartURI(l.ID, s.msn, len(s.parts))
		} else {
			m.Hint = hls.PartURI(l.ID, e.first+int64(len(l.segs)), 0)
		}
	}
	for _, o := range e.lanes {
		if o == l || len(o.segs) == 0 {
			continue
		}
		s := o.segs[len(o.segs)-1]
		if len(s.parts) == 0 && len(o.segs) > 1 {
			s = o.segs[len(o.segs)-2]
		}
		m.Reports = append(m.Reports, hls.Report{URI: hls.PlaylistURI(o.ID), LastMSN: s.msn, LastPart: len(s.parts) - 1})
	}
}
