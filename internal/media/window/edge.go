// Package window is the live edge of one broadcast: the open segment and the last ones in memory, every earlier one by its place in
// storage; playlists rendered when somebody asks; sealed segments handed to storage in order. The packager writes it, playback reads
// it, neither knows the other. It must never know HTTP, S3, the database or who may watch.
// Goroutines: one per Edge, Run, which stores what was sealed.
package window

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// Mode is how a stream is cut and listed.
type Mode struct {
	Low      bool          // parts are listed (LL-HLS)
	Listed   time.Duration // how much the sliding playlist holds, at least
	Leading  int64         // media sequence numbers listed as gaps in front of the first segment (players on iOS want a full window)
	InMemory int           // whole segments kept in memory behind the open one
}

// Options is what an Edge needs.
type Options struct {
	Media    string // prefix of storage keys: media/{Media}/…
	Mode     Mode
	Store    Store
	Recorder Recorder
	Timeline *timeline.Timeline // what was recorded before (a recovered broadcast); nil: nothing
	Logger   *slog.Logger
}

// Edge is the live edge of one broadcast.
type Edge struct {
	opt Options

	mu      sync.Mutex
	version uint64 // of everything a playlist shows; grows with each publication
	lanes   []*lane
	first   int64 // media sequence number of the first segment
	sealed  int   // how many segments, from the first on, are whole in every lane and queued for storage
	target  int   // seconds; 0 until the first segment is whole
	parts   map[string]time.Duration
	ended   bool
	live    bool          // a publication is attached: more parts are coming
	queue   []row         // sealed, not yet stored
	wake    chan struct{} // one token: the queue has grown or the edge has ended
	held    int64         // bytes in the queue
}

// lane is one rendition at the edge.
type lane struct {
	timeline.Rendition
	inits []initSegment
	segs  []*segment // from Edge.first on; the last one may be open
	wait  chan struct{}
	text  map[listing]*rendered
	event prefix
	slid  struct { // what has left the sliding playlist
		count           int
		discontinuities int64
	}
	peak  float64 // bits per second
	bytes int64
	ticks int64
}

type initSegment struct {
	timeline.Init
	data   []byte
	stored bool
}

type segment struct {
	msn         int64
	start       time.Time
	disc        bool
	init        int
	time        int64 // ticks
	dur         int64 // ticks; of the parts so far
	size        int64
	buf         []byte // nil once only storage has it
	parts       []part // nil once too old to be listed
	independent bool
	gap         bool
	done        bool
	stored      bool
}

type part struct {
	off, end    int64
	dur         int64 // ticks
	independent bool
}

// New returns an Edge that continues o.Timeline, if there is one.
func New(o Options) *Edge {
	e := &Edge{opt: o, first: o.Mode.Leading, wake: make(chan struct{}, 1), parts: map[string]time.Duration{}}
	if t := o.Timeline; t != nil && len(t.Marks) > 0 {
		e.resume(t)
	}
	return e
}

func (e *Edge) resume(t *timeline.Timeline) {
	e.first, e.target, e.sealed = t.First, t.Target, len(t.Marks)
	for _, from := range t.Lanes {
		l := &lane{Rendition: from.Rendition}
		for _, in := range from.Inits {
			l.inits = append(l.inits, initSegment{Init: in, stored: true})
		}
		for i, c := range from.Chunks {
			l.segs = append(l.segs, &segment{
				msn: t.First + int64(i), start: t.Marks[i].Start, disc: t.Marks[i].Discontinuity, init: c.Init, time: c.Time, dur: c.Duration,
				size: c.Size, independent: c.Independent, gap: c.Gap, done: true, stored: true,
			})
			l.account(c.Size, c.Duration)
		}
		e.lanes = append(e.lanes, l)
	}
}

func (e *Edge) lane(id string) *lane {
	for _, l := range e.lanes {
		if l.ID == id {
			return l
		}
	}
	return nil
}

func (l *lane) account(size, ticks int64) {
	if ticks == 0 || size == 0 {
		return
	}
	l.bytes += size
	l.ticks += ticks
	l.peak = max(l.peak, float64(size)*8*float64(l.Timescale)/float64(ticks))
}

func (l *lane) open() *segment {
	if n := len(l.segs); n > 0 && !l.segs[n-1].done {
		return l.segs[n-1]
	}
	return nil
}

func (l *lane) duration(ticks int64) time.Duration {
	s := int64(l.Timescale)
	return time.Duration(ticks/s)*time.Second + time.Duration(ticks%s)*time.Second/time.Duration(s)
}

// Key is the storage key of a chunk.
func (e *Edge) key(rendition string, msn int64) string {
	return fmt.Sprintf("media/%s/%s/%d.m4s", e.opt.Media, rendition, msn)
}

// changed publishes: caches are stale, waiters on l look again. Called with the lock.
func (e *Edge) changed(l *lane) {
	e.version++
	if l.wait != nil {
		close(l.wait)
		l.wait = nil
	}
}

// --- the packager's side; one goroutine at a time ---

// Standing is where the recording stands when a publication begins.
type Standing struct {
	At    float64 // seconds of media time where what was recorded ends
	Zero  float64 // seconds of media time where it begins
	Began bool    // something was recorded
	Lanes []timeline.Rendition
	Next  []int64 // by lane: ticks where its media ends
}

// Standing tells a publication where to go on.
func (e *Edge) Standing() Standing {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out Standing
	for _, l := range e.lanes {
		out.Lanes, out.Next = append(out.Lanes, l.Rendition), append(out.Next, 0)
		if n := len(l.segs); n > 0 {
			s := l.segs[n-1]
			out.Next[len(out.Next)-1] = s.time + s.dur
			if first := float64(l.segs[0].time) / float64(l.Timescale); !out.Began || first < out.Zero {
				out.Zero = first
			}
			out.At = max(out.At, float64(s.time+s.dur)/float64(l.Timescale))
			out.Began = true
		}
	}
	return out
}

// Target says the constants of the playlists; only the first call counts. Part targets are by rendition.
func (e *Edge) Target(seconds int, parts map[string]time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.target == 0 {
		e.target = seconds
	}
	for id, d := range parts {
		if _, said := e.parts[id]; !said {
			e.parts[id] = d
		}
	}
}

// TargetDuration is EXT-X-TARGETDURATION in seconds, 0 while it is not known.
func (e *Edge) TargetDuration() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.target
}

// AddInit adds an initialization segment and, with its first one, the rendition; it returns its number.
// The same bytes as the rendition's last one give that one's number.
func (e *Edge) AddInit(kind frame.Kind, timescale uint32, in timeline.Init, data []byte) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lane(in.Rendition)
	if l == nil {
		l = &lane{Rendition: timeline.Rendition{ID: in.Rendition, Kind: kind, Timescale: timescale}}
		if len(e.lanes) > 0 {
			l.backfill(e.lanes[0])
		}
		e.lanes = append(e.lanes, l)
	}
	if n := len(l.inits); n > 0 && string(l.inits[n-1].data) == string(data) {
		return n - 1
	}
	in.Object = fmt.Sprintf("media/%s/%s/init-%d.mp4", e.opt.Media, in.Rendition, len(l.inits))
	l.inits = append(l.inits, initSegment{Init: in, data: data})
	return len(l.inits) - 1
}

// backfill gives a rendition that joins late a gap for every segment that o has finished.
func (l *lane) backfill(o *lane) {
	for _, s := range o.segs {
		if s.done {
			l.segs = append(l.segs, gapLike(l, o, s))
		}
	}
}

func gapLike(l, o *lane, s *segment) *segment {
	scale := func(v int64) int64 {
		return v/int64(o.Timescale)*int64(l.Timescale) + v%int64(o.Timescale)*int64(l.Timescale)/int64(o.Timescale)
	}
	return &segment{msn: s.msn, start: s.start, disc: s.disc, time: scale(s.time), dur: scale(s.dur), gap: true, done: true, stored: s.stored}
}

// Live says whether a publication is attached. While none is, playlists promise no next part.
func (e *Edge) Live(attached bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.live = attached
	for _, l := range e.lanes {
		e.changed(l)
	}
}

// Begin opens the next segment of a rendition: wall clock of its first frame, whether it continues the last one, which init segment,
// decoding time of its first sample in ticks.
func (e *Edge) Begin(rendition string, start time.Time, discontinuity bool, init int, at int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lane(rendition)
	l.segs = append(l.segs, &segment{msn: e.first + int64(len(l.segs)), start: start, disc: discontinuity, init: init, time: at})
}

// Part adds one part to the open segment. buf is the whole segment so far, the part being its tail from where the last one ended;
// what was given before may move but must not change, and nothing is written below len(buf) later.
func (e *Edge) Part(rendition string, buf []byte, ticks int64, independent bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lane(rendition)
	s := l.open()
	s.independent = s.independent || (len(s.parts) == 0 && independent)
	s.parts = append(s.parts, part{off: s.size, end: int64(len(buf)), dur: ticks, independent: independent})
	s.buf, s.size = buf, int64(len(buf))
	s.dur += ticks
	e.changed(l)
}

// Finish closes the open segment of a rendition; one without parts becomes a gap that lasts ticks.
// When every rendition has closed it, it is sealed: queued for storage.
func (e *Edge) Finish(rendition string, ticks int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lane(rendition)
	s := l.open()
	s.done = true
	if len(s.parts) == 0 {
		s.gap = true
	}
	s.dur = max(s.dur, ticks) // the last picture may stand for longer than its part said
	l.account(s.size, s.dur)
	e.changed(l)
	e.seal()
}

// Ended says that nothing is added any more.
func (e *Edge) Ended() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ended
}

// Close ends the broadcast's record: what is open is finished, playlists get their end.
func (e *Edge) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return
	}
	e.ended, e.live = true, false
	for _, l := range e.lanes {
		if s := l.open(); s != nil {
			s.done = true
			if len(s.parts) == 0 {
				l.segs = l.segs[:len(l.segs)-1]
			}
		}
	}
	e.seal()
	for _, l := range e.lanes {
		e.changed(l)
	}
	e.signal()
}
