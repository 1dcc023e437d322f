package window

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"millrace/internal/id"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/timeline"
)

// The packager's side: one goroutine at a time. Once the edge is closed nothing is taken any more.

// Target says the constants of the playlists: the target duration in seconds (0: not known yet) and part targets by
// rendition. Only what is said first counts. A rendition that comes later has no longer part target than the others, so
// that PART-HOLD-BACK stays.
func (e *Edge) Target(seconds int, parts map[string]time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.target == 0 {
		e.target = seconds
	}
	longest := e.longestPart()
	for id, d := range parts {
		if _, said := e.parts[id]; said || d <= 0 {
			continue
		}
		d = (d + time.Microsecond - 1).Truncate(time.Microsecond) // as playlists say it
		if longest > 0 {
			d = min(d, longest)
		}
		e.parts[id] = d
		for _, l := range e.renditions {
			if l.ID == id {
				l.PartTarget = d.Microseconds()
			}
		}
	}
}

func (e *Edge) longestPart() time.Duration {
	var longest time.Duration
	for _, d := range e.parts {
		longest = max(longest, d)
	}
	return longest
}

// TargetDuration is EXT-X-TARGETDURATION in seconds, 0 while it is not known.
func (e *Edge) TargetDuration() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.target
}

// PartLimit is how long a part of the rendition may be: its part target if that was said, else the longest of the
// others; 0: nothing was said.
func (e *Edge) PartLimit(rendition string) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d, said := e.parts[rendition]; said {
		return d
	}
	return e.longestPart()
}

// AddInit adds an initialization segment and, with its first one, the rendition; it returns its number.
// The same bytes as one before give that one's number: an encoder that goes back and forth costs no storage.
func (e *Edge) AddInit(kind frame.Kind, timescale uint32, in timeline.Init, data []byte) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(in.Rendition)
	if l == nil {
		l = &liveRendition{RenditionInfo: timeline.RenditionInfo{
			ID: in.Rendition, Kind: kind, Timescale: timescale,
			PartTarget: e.parts[in.Rendition].Microseconds(),
		}}
		if len(e.renditions) > 0 {
			l.backfill(e.renditions[0])
		}
		e.renditions = append(e.renditions, l)
	}
	sum := sha256.Sum256(data)
	in.Hash = hex.EncodeToString(sum[:16])
	for n := range l.inits {
		if l.inits[n].Hash == in.Hash {
			return n
		}
	}
	in.Generation = e.opt.Generation
	in.Object = objectkey.Resource(id.Media(e.opt.Media),
		hls.InGeneration(in.Generation, hls.InitURI(in.Rendition, len(l.inits))))
	l.inits = append(l.inits, initSegment{Init: in, data: data})
	return len(l.inits) - 1
}

// backfill gives a rendition that joins late a gap for every segment that o has finished and l has not. A gap begins
// where the rendition's own media ends, up to a part from where o's segment begins, and ends with that: the lengths of
// both add up to the same.
func (l *liveRendition) backfill(o *liveRendition) {
	for i := len(l.segs); i < len(o.segs) && o.segs[i].done; i++ {
		s := &o.segs[i]
		at, end := rescale(s.time, o.Timescale, l.Timescale), rescale(s.time+s.dur, o.Timescale, l.Timescale)
		if i > 0 {
			at = l.segs[i-1].time + l.segs[i-1].dur
		}
		l.segs = append(l.segs, segment{
			start: s.start, disc: s.disc, slate: s.slate, time: at, dur: max(end-at, l.least()),
			gap: true, done: true, stored: s.stored, init: l.lastInit(), generation: s.generation,
		})
	}
}

func rescale(v int64, from, to uint32) int64 {
	return v/int64(from)*int64(to) + v%int64(from)*int64(to)/int64(from)
}

// lastInit is the init segment of the last segment, which a gap keeps so that no EXT-X-MAP stands at it.
func (l *liveRendition) lastInit() int32 {
	if n := len(l.segs); n > 0 {
		return l.segs[n-1].init
	}
	return 0
}

// Live reports whether a publication is attached. While none is, playlists promise no next part.
func (e *Edge) Live(attached bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.live = attached && !e.ended
	for _, d := range e.derived.renditions {
		d.awake()
	}
	for _, l := range e.renditions {
		l.fresh = e.live
		e.changed(l)
	}
}

// Begin opens the next segment of a rendition: what m says but for the generation, which is the edge's; which init
// segment, decoding time of its first sample in ticks.
func (e *Edge) Begin(rendition string, m timeline.Mark, init int, at int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(rendition)
	if e.ended || l == nil {
		return
	}
	l.segs = append(l.segs, segment{
		start: m.Start.UnixMilli(), disc: m.Discontinuity, slate: m.Slate, init: int32(init), time: at,
		hot:        &hot{parts: make([]part, 0, 8)},
		generation: int32(e.opt.Generation),
	})
	if e.opt.Short != nil && !e.short && e.first+int64(len(l.segs)) >= e.reserved {
		e.short = true
		e.opt.Short()
	}
	l.fresh = false
	l.takeNews()
	e.noteBegin(l)
	l.stirred()
	if m.Discontinuity {
		l.awake() // who waits for a part that would have continued waits in vain
	}
}

// Part adds one part to the open segment. buf is the segment so far, the part being its tail from where the last one
// ended; what was given before may move but must not change, and nothing is written below len(buf) later. Once the
// segment's file has all of it, Part reports that the edge is done with buf: what is given next begins behind it. Who
// gave nothing before the part in the same buf may use that again, as nobody else has seen it.
func (e *Edge) Part(rendition string, buf []byte, ticks int64, independent bool) (done bool) {
	e.notePart(rendition, buf, ticks, independent)
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(rendition)
	if e.ended || l == nil || l.open() == nil {
		return false
	}
	s := l.open()
	end := s.hot.from + int64(len(buf))
	s.independent = s.independent || (s.parts == 0 && independent)
	s.hot.parts = append(s.hot.parts, part{
		off: s.size, end: end, dur: ticks, samples: len(l.news),
		independent: independent,
	})
	l.takeNews()
	s.hot.buf, s.size = buf, end
	s.parts++
	s.dur += ticks
	e.changed(l)
	if l.followers > 0 || !s.written() {
		return false
	}
	s.hot.buf, s.hot.from = nil, end
	return true
}

// Finish closes the open segment of a rendition; one without parts becomes a gap that lasts ticks.
// When every rendition has closed it, it is sealed: queued for storage.
func (e *Edge) Finish(rendition string, ticks int64) {
	e.noteEnd(rendition, ticks)
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(rendition)
	if e.ended || l == nil || l.open() == nil {
		return
	}
	e.finish(l, ticks)
	e.changed(l)
	e.seal()
}

func (e *Edge) finish(l *liveRendition, ticks int64) {
	s := l.open()
	s.done = true
	s.dur = max(s.dur, ticks) // the last picture may stand for longer than its part said
	if s.parts == 0 {
		s.gap, s.hot = true, nil // without a part there is no file
		if n := len(l.segs); n > 1 {
			s.init = l.segs[n-2].init
		}
		return
	}
	l.rate.Add(s.size, s.dur, l.Timescale, e.target)
	l.captions.whole = l.captions.whole || l.captions.text
	if s.written() && l.followers == 0 {
		s.hot.buf = nil
	}
}

// Close ends the broadcast's record: what is open is finished, playlists get their end.
func (e *Edge) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.close()
}

// Yield ends the record as Close does, for another writer to go on with it: nobody is shown an end. Whoever asks for a
// playlist, or waits, gets ErrMoved.
func (e *Edge) Yield() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.yielded = e.yielded || !e.ended
	e.close()
}

// close ends the record. Called with the lock.
func (e *Edge) close() {
	if e.ended {
		return
	}
	longest := (*liveRendition)(nil)
	for _, l := range e.renditions {
		if s := l.open(); s != nil && s.parts == 0 {
			l.segs = l.segs[:len(l.segs)-1]
		} else if s != nil {
			if j := e.opt.Journal; j != nil {
				msn, r := e.endOf(l, 0)
				j.Note(msn, r, nil)
			}
			e.finish(l, 0)
		}
		if longest == nil || len(l.segs) > len(longest.segs) {
			longest = l
		}
	}
	for _, l := range e.renditions {
		l.backfill(longest) // what one rendition has is not thrown away for another's sake
	}
	e.ended, e.live = true, false
	e.seal()
	if rest := e.texts.pending(); len(rest) > 0 && e.sealed > 0 {
		e.queue = append(e.queue, row{index: -1, entries: rest})
	}
	for _, l := range e.renditions {
		e.changed(l)
	}
	for _, d := range slices.Concat(e.derived.renditions, e.texts.renditions) {
		e.changed(d)
	}
	e.signal()
}
