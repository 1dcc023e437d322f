// Package window is the live edge of one broadcast: the open segment in memory, the segments before it in the journal's
// files, and every earlier one by its place in storage. It renders playlists on request, and hands sealed segments to
// storage in order. The packager writes it and playback reads it; neither knows the other. It must never know HTTP, S3,
// the database or who may watch. Goroutines: one per Edge, Run, which stores sealed segments, and below it one for each
// journal, which writes it.
package window

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"millrace/internal/id"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/journal"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/timeline"
)

// Mode is how a stream is cut and listed.
type Mode struct {
	Low    bool          // parts are listed (LL-HLS)
	Listed time.Duration // how much the sliding playlist of the lead holds, at least; the others' begin where it does
	// Media sequence numbers listed as gaps in front of the first segment (players on iOS want a full window).
	Leading  int64
	InMemory int // whole segments kept at hand, in memory or as open files, behind the open one
}

// Options is what an Edge needs.
type Options struct {
	Media    string // prefix of storage keys: media/{Media}/…
	Mode     Mode
	Store    Store
	Recorder Recorder
	Timeline *timeline.Timeline // what was recorded before (a recovered broadcast); nil: nothing
	// MaxHeld bounds the bytes that wait for a storage that does not respond; behind it segments are lost, which is
	// logged and recorded as gaps. 256 MiB when 0.
	MaxHeld int64
	// Generation numbers those who write the broadcast: it is in the URLs of what is published now, so that they never
	// name other bytes than those of another writer do.
	Generation int64
	// Reserved is the first media sequence number that no earlier writer can have published, as far as the database
	// knows; see Reserve.
	Reserved int64
	// Short is told when the reserved numbers come to an end. It must not block.
	Short func()
	// Broken is told that a goroutine of the edge's has panicked: parts are not kept any more. It must not block.
	Broken func(why error)
	// Journal keeps parts in files until they are recorded; what an earlier process left in it is taken over. nil:
	// memory has them, and a crash loses what is not stored.
	Journal *journal.Journal
	// DerivedJournal is likewise for what is published of derived renditions, until it is stored.
	DerivedJournal *journal.Journal
	Logger         *slog.Logger
}

// Edge is the live edge of one broadcast.
type Edge struct {
	opt Options

	backlog

	mu         sync.Mutex
	version    uint64        // of everything a playlist shows; grows with each publication
	revised    chan struct{} // closed with the next version; nil: nobody waits
	renditions []*liveRendition
	derived    Derived // made of renditions
	texts      Texts   // cut as the video is
	first      int64   // media sequence number of the first segment
	left       int64   // sliding playlists begin with no lower number any more
	sealed     int     // how many segments, from the first on, are whole in every rendition and queued for storage
	target     int     // seconds; 0 until the first segment is whole
	parts      map[string]time.Duration
	ended      bool
	yielded    bool // ended for another writer to go on: nobody is shown an end
	live       bool // a publication is attached: more parts are coming

	inherited bool // there is something here that was not looked at for closed captions

	reserved int64 // media sequence numbers below this one may be published
	short    bool  // that they come to an end is told
	parted   int   // segments before this one are not in the journal any more
}

// backlog is what is sealed and not yet stored, under the edge's lock.
type backlog struct {
	queue        []row
	held         int64         // bytes in the queue
	wake         chan struct{} // one token: the queue has grown or the edge has ended
	losing       []int         // segments that are lost and whose media may still be read, from Edge.first on
	storedChange chan struct{} // closed with the next segment that is stored or lost; nil: nobody waits
}

// liveRendition is one rendition at the edge.
type liveRendition struct {
	timeline.RenditionInfo
	inits []initSegment
	segs  []segment // from Edge.first on; the last one may be open
	cold  int       // segments before this one have nothing in memory
	fresh bool      // a publication was attached and has begun no segment here; not of a derived rendition
	wait  chan struct{}
	text  map[listing]*rendered
	event prefix
	slid  struct { // what has left the sliding playlist
		count           int
		discontinuities int64
	}
	breaks struct { // what has been looked at for discontinuities
		count int
		any   bool
	}
	rate timeline.Rate

	captions closedCaptions

	news      []Sample      // behind the last part
	stir      chan struct{} // closed with every picture; nil: nobody follows so closely
	followers int           // whole segments stay in memory for them

	said *written // of a text rendition

	of *liveRendition // of a derived rendition: its source
	// Of a derived rendition: the first segment that somebody makes now, from Edge.first on; -1: none.
	from int
	// of a derived rendition: a segment that is listed and is encoded now as those from `from` on are; -1: none
	late int
	// Of a derived rendition: a segment of which a part is on its way into the journal; -1: none.
	waiting int
}

type initSegment struct {
	timeline.Init
	data   []byte
	stored bool // or queued to be
}

// segment is small: a day of them stays in memory.
type segment struct {
	start       int64 // wall clock of its first frame, Unix milliseconds; 0: unknown
	time        int64 // ticks
	dur         int64 // ticks; of the parts so far
	size        int64
	hot         *hot // nil once it is far behind the edge
	init        int32
	parts       int32 // how many it has or had; 0 for one of an earlier process whose parts nobody knows
	generation  int32 // in which it was published
	disc        bool
	slate       bool
	independent bool
	gap         bool
	done        bool
	stored      bool
	lost        bool // storage was away for too long: a gap as soon as it is dropped from memory
	// Of a derived one: it is not made live (any more). Somebody was told to make all of it, or its beginning is
	// stored, or an earlier process has published it, or has given what others had made.
	taken bool
}

// hot is what is at hand of a segment.
type hot struct {
	buf   []byte         // nil once all of it is in a file, or storage has it
	from  int64          // bytes of the segment in front of buf, which its file has
	media *journal.Media // its file; nil without a journal, and once storage has it
	parts []part
	down  bool // the file was put down
	// Of a derived rendition: its file in that journal; nil: nothing is in there.
	derived *journal.Media
	bare    bool // of an earlier process: nobody knows which pictures are in its parts
}

// written reports whether the segment, so far, is in its file.
func (s *segment) written() bool {
	return s.hot != nil && s.hot.media != nil && s.hot.media.Written(s.size)
}

// locate says where the bytes of a segment are that its file does not have, or has in part: the disk is late, or there
// is none.
func (h *hot) locate(p *Location) {
	if h.from == 0 {
		p.Data = h.buf
	} else if h.buf != nil {
		p.File, p.Tail = h.media, h.buf
	}
}

// inMemory is a part's bytes; nil: they are not there, or its file has them.
func (h *hot) inMemory(p *part) []byte {
	if h.buf == nil || p.off < h.from || h.media != nil && h.media.Written(p.end) {
		return nil
	}
	return h.buf[p.off-h.from : p.end-h.from : p.end-h.from]
}

type part struct {
	off, end    int64
	dur         int64 // ticks
	samples     int   // how many pictures it has; 0: nobody counted
	independent bool
}

// New returns an Edge that continues o.Timeline, if there is one, with what o.Journal holds behind it: that is stored
// and recorded by Run like any other segment.
func New(o Options) *Edge {
	if o.MaxHeld <= 0 {
		o.MaxHeld = 256 << 20
	}
	e := &Edge{
		opt:     o,
		first:   o.Mode.Leading,
		backlog: backlog{wake: make(chan struct{}, 1)},
		parts:   map[string]time.Duration{},
	}
	e.derived.e, e.texts.e = e, e
	if t := o.Timeline; t != nil && len(t.Marks) > 0 {
		e.resume(t)
	}
	e.takeOver()
	e.derived.takeOver()
	e.texts.keep()
	e.inherited = e.count() > 0
	return e
}

func (e *Edge) resume(t *timeline.Timeline) {
	e.first, e.target, e.sealed = t.First, t.Target, len(t.Marks)
	e.texts.resume(t)
	for _, from := range t.Renditions {
		l := &liveRendition{
			RenditionInfo: from.RenditionInfo, cold: len(t.Marks),
			segs: make([]segment, 0, len(t.Marks)+256),
		}
		for _, in := range from.Inits {
			l.inits = append(l.inits, initSegment{Init: in, stored: true})
		}
		for i, c := range from.Chunks {
			s := segment{
				disc: t.Marks[i].Discontinuity, slate: t.Marks[i].Slate, init: int32(c.Init), time: c.Time,
				dur:  c.Duration,
				size: c.Size, independent: c.Independent, gap: c.Gap, done: true, stored: true,
				generation: int32(t.Marks[i].Generation),
			}
			if !t.Marks[i].Start.IsZero() {
				s.start = t.Marks[i].Start.UnixMilli() + c.Apart
			}
			l.segs = append(l.segs, s)
			l.rate.Add(c.Size, c.Duration, l.Timescale, e.target)
		}
		if from.PartTarget > 0 {
			e.parts[l.ID] = time.Duration(from.PartTarget) * time.Microsecond
		}
		e.renditions = append(e.renditions, l)
	}
}

func (e *Edge) rendition(id string) *liveRendition {
	for _, l := range e.renditions {
		if l.ID == id {
			return l
		}
	}
	return nil
}

func (l *liveRendition) open() *segment {
	if n := len(l.segs); n > 0 && !l.segs[n-1].done {
		return &l.segs[n-1]
	}
	return nil
}

func (l *liveRendition) duration(ticks int64) time.Duration {
	s := int64(l.Timescale)
	return time.Duration(ticks/s)*time.Second + time.Duration(ticks%s)*time.Second/time.Duration(s)
}

// within is the first segment, from `from` on, that ends less than d before the rendition's end.
func (l *liveRendition) within(from int, d time.Duration) int {
	var behind time.Duration
	i := len(l.segs)
	for i > from && (behind < d || !l.segs[i-1].done) {
		i--
		behind += l.duration(l.segs[i].dur)
	}
	return i
}

// beginsWithin is the first segment, from `from` on, that begins at most d before the rendition's end.
func (l *liveRendition) beginsWithin(from int, d time.Duration) int {
	var behind time.Duration
	i := len(l.segs)
	for i > from {
		if behind += l.duration(l.segs[i-1].dur); behind > d {
			break
		}
		i--
	}
	return i
}

// key is the storage key of a chunk.
func (e *Edge) key(rendition string, msn int64) string {
	uri := hls.SegmentURI(rendition, msn, "m4s")
	if l, i := e.rendition(rendition), msn-e.first; l != nil && i >= 0 && i < int64(len(l.segs)) {
		uri = hls.InGeneration(int64(l.segs[i].generation), uri)
	}
	return objectkey.Resource(id.Media(e.opt.Media), uri)
}

// changed publishes: caches are stale, waiters on l look again. Called with the lock.
func (e *Edge) changed(l *liveRendition) {
	e.revise()
	l.awake()
	e.derived.follow(l)
	if l.Kind != frame.Text {
		e.texts.follow(l)
	}
}

// awake has waiters on l look again.
func (l *liveRendition) awake() {
	if l.wait != nil {
		close(l.wait)
		l.wait = nil
	}
	l.stirred()
}

// Standing is where the recording stands when a publication begins.
type Standing struct {
	At         float64 // seconds of media time where what was recorded ends
	Zero       float64 // seconds of media time where it begins
	Began      bool    // something was recorded
	Renditions []timeline.RenditionInfo
	Next       []int64   // by rendition: ticks where its media ends
	Ends       time.Time // the wall clock where what was recorded ends; zero: unknown
}

// Standing tells a publication where to go on.
func (e *Edge) Standing() Standing {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out Standing
	for _, l := range e.renditions {
		out.Renditions, out.Next = append(out.Renditions, l.RenditionInfo), append(out.Next, 0)
		if n := len(l.segs); n > 0 {
			s := &l.segs[n-1]
			out.Next[len(out.Next)-1] = s.time + s.dur
			if first := float64(l.segs[0].time) / float64(l.Timescale); !out.Began || first < out.Zero {
				out.Zero = first
			}
			out.At = max(out.At, float64(s.time+s.dur)/float64(l.Timescale))
			out.Began = true
			if ends := l.ends(); ends.After(out.Ends) {
				out.Ends = ends
			}
		}
	}
	return out
}

// Ended reports whether the broadcast's record is closed: nothing will be added.
func (e *Edge) Ended() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended
}

// Independent reports whether each segment of every rendition can be decoded without another one, also those that are
// still to come (EXT-X-INDEPENDENT-SEGMENTS).
func (e *Edge) Independent() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !slices.ContainsFunc(e.renditions, func(l *liveRendition) bool { return !e.independent(l) })
}

// independent is Independent for one rendition. Sound always is, and a derived rendition's encoder begins each segment
// with a key frame. Of a picture that comes from outside nobody knows before its end: a segment may have to be cut
// where there is no key frame. Called with the lock.
func (e *Edge) independent(l *liveRendition) bool {
	if l.Kind != frame.Video || l.of != nil {
		return true
	}
	return e.ended && !slices.ContainsFunc(l.segs, func(s segment) bool { return !s.gap && !s.independent })
}
