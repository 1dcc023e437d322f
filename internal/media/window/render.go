package window

import (
	"slices"
	"sync"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
)

// listing is one of the playlists of a rendition.
type listing struct{ event, skip, textHoldBack bool }

// rendered is a playlist's text, kept until the edge changes.
type rendered struct {
	version uint64
	text    []byte
	hint    string
	pack    sync.Once
	packed  []byte
}

// prefix is the text of the segments of the EVENT playlist that will never change again.
type prefix struct {
	text  []byte
	count int // segments from the first on
}

// bytes compresses once, whoever asks first.
func (r *rendered) bytes(compressed bool) []byte {
	if !compressed {
		return r.text
	}
	r.pack.Do(func() { r.packed = hls.Gzip(r.text) })
	return r.packed
}

// rendered gives a playlist, rendering it once per change and only when somebody asks. Called with the lock.
func (e *Edge) rendered(l *liveRendition, k listing) *rendered {
	if r := l.text[k]; r != nil && r.version == e.version {
		return r
	}
	if l.text == nil {
		l.text = map[listing]*rendered{}
	}
	m := e.media(l, k)
	r := &rendered{version: e.version, hint: m.Hint, text: m.Append(make([]byte, 0, 4096+len(m.Rendered)))}
	l.text[k] = r
	return r
}

func (e *Edge) media(l *liveRendition, k listing) *hls.Media {
	m := &hls.Media{TargetDuration: e.target, Ended: e.ended, MediaSequence: e.first, Independent: e.independent(l)}
	// Who watches the stream to its end finds the same version and the same offers there.
	if e.opt.Mode.Low && (!e.ended || !k.event) {
		m.CanBlock = true
		m.SkipUntil = time.Duration(6*e.target) * time.Second
	}
	m.Continuous = e.opt.Mode.Low && l.Kind == frame.Text && l.continuous()
	if longest := e.longestPart(); m.CanBlock && longest > 0 {
		if l.Kind != frame.Text && !e.ended {
			m.PartTarget = e.partTarget(l)
		}
		// Text has no parts: a segment is listed when it is whole in the video. Nor has what has ended. Shaka wants
		// PART-HOLD-BACK of each playlist with EXT-X-SERVER-CONTROL once one has it.
		if m.PartHoldBack = hls.HoldBack(longest); l.Kind == frame.Text || k.textHoldBack {
			m.PartHoldBack += e.targetDuration()
		}
	}
	from := 0
	switch {
	case k.event && e.ended && (len(l.segs) == 0 || !l.segs[len(l.segs)-1].slate):
		// slate at the end is left out when the asset is finished
		m.Type = hls.VOD
	case k.event:
		m.Type = hls.Event
	default:
		from = e.windowStart(l, m)
	}
	if m.SkipUntil > 0 && k.skip {
		if n := l.within(from, m.SkipUntil+time.Millisecond) - from; n > 0 { // rounding leaves nobody short
			m.Skipped, m.Segments = n+len(m.Segments), nil // leading gaps are older still
			from += n
		}
	}
	if k.event && m.Skipped == 0 {
		from = l.extendPrefix(e)
		m.Rendered = l.event.text
	}
	e.list(l, m, from)
	if !e.ended && m.PartTarget > 0 {
		m.Hint = e.hint(l)
	}
	if m.CanBlock {
		e.report(l, m, k.event)
	}
	return m
}

// list adds the segments from `from` on, the newest with their parts.
func (e *Edge) list(l *liveRendition, m *hls.Media, from int) {
	parted := len(l.segs)
	if m.PartTarget > 0 {
		parted = l.beginsWithin(from, time.Duration(3*e.target)*time.Second)
	}
	// Also behind EXT-X-SKIP: players parse a delta update before they merge it.
	atFront := len(m.Rendered) == 0 && len(m.Segments) == 0
	m.Segments = slices.Grow(m.Segments, len(l.segs)-from)
	for i := from; i < len(l.segs); i++ {
		seg := e.describe(l, i, atFront && i == from)
		if i >= parted {
			seg.Parts = e.listParts(l, i)
		}
		if l.segs[i].done {
			m.Segments = append(m.Segments, seg)
		} else if len(seg.Parts) > 0 {
			m.Open = &seg
		}
	}
}

// Lasts is for how long a playlist need not grow when nothing comes any more: for one and a half target durations from
// when it did last, section 6.2.2, and, where parts are listed, for as long as players have something to show that stay
// three parts behind, and parts are waited for. part and segment are how much of what came is in the open part and in
// the open segment, and not listed yet.
func (e *Edge) Lasts(part, segment time.Duration) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.targetDuration()*3/2 - segment
	if longest := e.longestPart(); e.opt.Mode.Low && longest > 0 {
		d = min(d, hls.HoldBack(longest)-part)
	}
	return max(d, 0)
}

// leastListed is how much the sliding playlist holds, at least.
func (e *Edge) leastListed() time.Duration {
	return max(e.opt.Mode.Listed, time.Duration(7*e.target)*time.Second)
}

// windowBegin is the media sequence number with which the sliding playlist of every rendition begins; those before
// Edge.first are leading gaps. The lead decides. Sound is cut some milliseconds beside the picture: by its own length
// its playlist would begin a segment earlier at times, and video.js 8.24.1 takes what it begins with for as old as what
// the picture's begins with. It then asks for sound of the wrong second until it gives up. What has left does not come
// back when a segment behind it gets shorter. Called with the lock.
func (e *Edge) windowBegin() int64 {
	lead := e.lead()
	if lead == nil {
		return max(e.first, e.left)
	}
	least, sum := e.leastListed(), time.Duration(0)
	from := len(lead.segs)
	for from > 0 && sum < least {
		from--
		if lead.segs[from].done {
			sum += e.listedFor(lead, from)
		}
	}
	begin := e.first + int64(from)
	for n := int64(0); from == 0 && !e.ended && n < e.opt.Mode.Leading && sum < least; n++ {
		sum += e.gapLength()
		begin--
	}
	e.left = max(e.left, begin)
	return e.left
}

// listedFor is how long a segment was listed for, or at most, where a crash has left nothing of it: that it is a gap as
// short as can be since then brings nothing back into the sliding playlist.
func (e *Edge) listedFor(l *liveRendition, i int) time.Duration {
	if s := &l.segs[i]; s.gap && s.dur <= l.least() {
		return time.Duration(e.target)*time.Second + time.Second/2
	}
	return l.duration(l.segs[i].dur)
}

// gapLength is how long a leading gap is.
func (e *Edge) gapLength() time.Duration { return time.Duration(e.target) * time.Second }

// windowStart gives the first listed segment of the sliding playlist and puts the leading gaps in front of it.
func (e *Edge) windowStart(l *liveRendition, m *hls.Media) int {
	begin := e.windowBegin()
	from := l.startsAt(int(max(begin-e.first, 0)))
	for ; l.slid.count < from; l.slid.count++ {
		if l.segs[l.slid.count].disc && l.slid.count > 0 {
			l.slid.discontinuities++
		}
	}
	m.DiscontinuitySequence = l.slid.discontinuities
	m.MediaSequence = e.first + int64(from)
	if begin >= e.first || e.ended || len(l.segs) == 0 {
		return from
	}
	m.MediaSequence = begin
	for msn := begin; msn < e.first; msn++ {
		uri := e.segmentURI(l, int(msn-e.first), 0)
		m.Segments = append(m.Segments, hls.Segment{URI: uri, Duration: e.gapLength(), Gap: true})
	}
	if l.Kind != frame.Text {
		m.Segments[0].Map = l.initURI(int(l.segs[0].init))
	}
	return from
}

// continuous reports whether no segment is behind a discontinuity.
func (l *liveRendition) continuous() bool {
	for b := &l.breaks; b.count < len(l.segs); b.count++ {
		b.any = b.any || l.segs[b.count].disc && b.count > 0
	}
	return !l.breaks.any
}

// startsAt is the first segment of a sliding playlist that begins with segment `from` in the lead: a rendition that is
// far behind lists the last one that it has.
func (l *liveRendition) startsAt(from int) int {
	return max(min(from, len(l.segs)-1), l.slid.count, 0)
}

// extendPrefix moves segments whose text can not change any more into the kept prefix and returns the first one behind
// it.
func (l *liveRendition) extendPrefix(e *Edge) int {
	p := &l.event
	for until := l.within(p.count, time.Duration(4*e.target)*time.Second); p.count < until; p.count++ {
		if s := &l.segs[p.count]; s.lost && !s.gap {
			break
		}
		seg := e.describe(l, p.count, p.count == 0)
		p.text = hls.AppendSegment(p.text, &seg)
	}
	return p.count
}

func (e *Edge) describe(l *liveRendition, i int, first bool) hls.Segment {
	s := &l.segs[i]
	seg := hls.Segment{
		URI:      e.segmentURI(l, i, int64(s.generation)),
		Duration: l.duration(s.dur), Discontinuity: s.disc && i > 0, Gap: s.gap,
	}
	seg.ProgramDateTime = s.starts()
	if l.Kind != frame.Text && (first || l.segs[max(i-1, 0)].init != s.init) {
		seg.Map = l.initURI(int(s.init))
	}
	return seg
}

// listParts gives the parts that may be shown. One that is longer than the part target for a frame that was lost is
// listed as long as the target: no part may be longer, and its media says where it is.
func (e *Edge) listParts(l *liveRendition, i int) []hls.Part {
	s := &l.segs[i]
	out := make([]hls.Part, e.listed(l, s))
	for k := range out {
		p := &s.hot.parts[k]
		out[k] = hls.Part{
			URI: e.partURI(l, i, k), Duration: min(l.duration(p.dur), e.partTarget(l)),
			Independent: p.independent,
		}
	}
	return out
}

// partURI names part k of segment i, which may be the next one to come: the name that was hinted for it.
func (e *Edge) partURI(l *liveRendition, i, k int) string {
	if k == 0 && l.follows(i) {
		i, k = i-1, int(l.segs[i-1].parts)
	}
	return hls.InGeneration(e.generation(l, i), hls.PartURI(l.ID, e.first+int64(i), k))
}

// generation is in which one segment i was, or will be, published.
func (e *Edge) generation(l *liveRendition, i int) int64 {
	if i < len(l.segs) {
		return int64(l.segs[i].generation)
	}
	return e.opt.Generation
}

func (l *liveRendition) initURI(n int) string {
	generation := int64(0)
	if n < len(l.inits) { // a derived rendition has none of its own
		generation = l.inits[n].Generation
	}
	return hls.InGeneration(generation, hls.InitURI(l.ID, n))
}

// hint is the URI of the next part, empty when none is promised: the encoder is away, or the next part is behind a
// discontinuity, a gap or parts that can't be listed. Shaka 5.2.12 takes a part that is hinted for one that goes on,
// finds the discontinuity behind it, and drops the picture up to the next key frame.
func (e *Edge) hint(l *liveRendition) string {
	i, k := len(l.segs), 0
	if s := l.open(); s != nil {
		i, k = i-1, int(s.parts)
	}
	before := i // the segment that has the part in front
	if k == 0 {
		before--
	}
	switch {
	case !e.live || k == 0 && i > 0 && !l.follows(i):
		return ""
	case before >= 0 && l.segs[before].hot != nil && e.listed(l, &l.segs[before]) == 0:
		return ""
	}
	return e.partURI(l, i, k)
}

// report adds the rendition reports, section 4.4.5.4: where the other renditions' playlists end. Text that was added is
// offered in EVENT playlists alone.
func (e *Edge) report(l *liveRendition, m *hls.Media, event bool) {
	for _, o := range slices.Concat(e.renditions, e.derived.renditions, e.texts.renditions) {
		n := len(o.segs)
		if o == l || n == 0 || !event && o.said != nil && o.said.offered {
			continue
		}
		if s := &o.segs[n-1]; !s.done && e.listed(o, s) == 0 {
			n-- // not in its playlist yet
		}
		if n > 0 {
			m.Reports = append(m.Reports, hls.Report{
				URI: hls.PlaylistURI(o.ID), LastMSN: e.first + int64(n) - 1,
				LastPart: e.listed(o, &o.segs[n-1]) - 1,
			})
		}
	}
}
