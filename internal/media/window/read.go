package window

import (
	"context"
	"errors"
	"slices"
	"time"

	"millrace/internal/media/delivered"
	"millrace/internal/media/hls"
	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

// What a reader is told.
var (
	ErrUnknown = errors.New("no such rendition, segment or part")
	ErrTooFar  = errors.New("too far ahead of the live edge")
	ErrNotYet  = errors.New("nothing to play yet")
	ErrTimeout = errors.New("the live edge did not get there in time")
	// ErrMoved is the response to who asks for playlists, or waits, once another writer may go on with the broadcast.
	ErrMoved = errors.New("the live stream is moving to another node")
)

// Location is where bytes are: in Data; or N bytes from Offset on (-1: all) of File or, once that is gone, of a stored
// Object. Where File has not all of them, Tail is the rest.
type Location struct {
	Data   []byte
	File   *journal.Media
	Tail   []byte
	Object string
	Offset int64
	N      int64
	// Of a derived rendition's segment that was not encoded while it was live: it has to be made from the source's.
	// Part -1: all of it.
	NotEncoded bool
	MSN        int64
	Part       int
	// Of a segment or part: how long it lasts, and the pixels of its picture, width times height; 0: there is none, or
	// it is not known.
	Length time.Duration
	Pixels int
	Init   delivered.Init // what it is decoded with
	Start  time.Time      // wall clock of the segment's first frame; zero: unknown
}

// Rendition describes a rendition at the edge.
type Rendition struct {
	timeline.RenditionInfo
	Inits   []timeline.Init // every one so far
	Listed  []timeline.Init // those of the segments in the sliding playlist, that of the newest segment last
	Peak    float64         // bits per second, of the fastest stretch
	Average float64
	// NoCaptions: no picture carries closed captions, as far as players may be told; see RFC 8216bis section 4.4.6.2,
	// CLOSED-CAPTIONS.
	NoCaptions bool
}

// Describe tells what there is to play; ErrNotYet before one whole segment exists.
func (e *Edge) Describe() ([]Rendition, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sealed == 0 {
		return nil, ErrNotYet
	}
	var out []Rendition
	for _, l := range e.renditions {
		if len(l.inits) == 0 {
			continue
		}
		d := Rendition{
			RenditionInfo: l.RenditionInfo, Peak: l.rate.Peak(l.Timescale),
			Average: l.rate.Average(l.Timescale),
		}
		for i := range l.inits {
			d.Inits = append(d.Inits, l.inits[i].Init)
		}
		d.Listed, d.NoCaptions = e.listedInits(l), e.noCaptions(l)
		out = append(out, d)
	}
	return out, nil
}

// Rate is what was measured of a rendition's segments so far.
func (e *Edge) Rate(rendition string) timeline.Rate {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.rendition(rendition); l != nil {
		return l.rate
	}
	return timeline.Rate{}
}

// listedInits are the parameters that a player of the sliding playlist meets. Called with the lock.
func (e *Edge) listedInits(l *liveRendition) []timeline.Init {
	var used []int32
	begin := l.startsAt(int(max(e.windowBegin()-e.first, 0)))
	for i := len(l.segs) - 1; i >= begin; i-- {
		if n := l.segs[i].init; !slices.Contains(used, n) && int(n) < len(l.inits) {
			used = append(used, n)
		}
	}
	if len(used) == 0 {
		used = []int32{int32(len(l.inits) - 1)}
	}
	out := make([]timeline.Init, 0, len(used))
	for _, n := range slices.Backward(used) {
		out = append(out, l.inits[n].Init)
	}
	return out
}

// Named reports whether a resource's name has the generation in which the edge published it: what another writer
// published under the same number is not what was asked for.
func (e *Edge) Named(rendition string, r hls.Resource) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.find(rendition)
	if l == nil || r.Init >= 0 {
		return l == nil || l.initURI(r.Init) == hls.InGeneration(r.Generation, hls.InitURI(l.ID, r.Init))
	}
	return r.MSN < e.first || e.generation(l, int(r.MSN-e.first)) == r.Generation
}

// ReadInit is an initialization segment.
func (e *Edge) ReadInit(rendition string, n int) (Location, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(rendition)
	if l == nil || n < 0 || n >= len(l.inits) {
		return Location{}, ErrUnknown
	}
	in := &l.inits[n]
	return Location{Data: in.data, Object: in.Object, N: -1}, nil
}

// ReadSegment is a whole media segment; one that is still open, or comes next, is waited for.
func (e *Edge) ReadSegment(ctx context.Context, rendition string, msn int64) (Location, error) {
	return e.await(ctx, rendition, e.threeTargets, func(l *liveRendition) (Location, bool, error) {
		i := msn - e.first
		if i < 0 || i > int64(len(l.segs))+1 {
			return Location{}, false, ErrUnknown
		}
		if i >= int64(len(l.segs)) || !l.segs[i].done || l.of != nil && l.late == int(i) {
			return Location{}, false, nil
		}
		s := &l.segs[i]
		if s.gap {
			return Location{}, false, ErrUnknown
		}
		p := Location{
			Object: e.key(l.ID, msn), N: s.size, NotEncoded: l.of != nil &&
				s.size == 0, MSN: msn, Part: -1, Length: l.duration(s.dur), Pixels: l.pixels(s),
			Init: l.initOf(s), Start: s.starts(),
		}
		if p.NotEncoded {
			s.taken = true
			return p, true, nil
		}
		if s.written() {
			p.File = s.hot.media
		} else if s.hot != nil {
			s.hot.locate(&p)
		}
		return p, true, nil
	})
}

// ReadPart is a partial segment. The next one, which is hinted, is waited for, but not for long. A segment that ends
// early hands the name of its next part on to the next segment's first one. Where that needs another init segment, or
// is a gap, the response is ErrUnknown at once.
func (e *Edge) ReadPart(ctx context.Context, rendition string, msn int64, part int) (Location, error) {
	hinted := false
	p, err := e.await(ctx, rendition, e.hintPatience, func(l *liveRendition) (Location, bool, error) {
		hinted = l.of == nil || !e.live
		i := msn - e.first
		if i < 0 || i > int64(len(l.segs)) || part < 0 {
			return Location{}, false, ErrUnknown
		}
		at, k, wait := l.locate(int(i), part)
		switch {
		case wait:
			return Location{}, false, nil
		case at < 0:
			return Location{}, false, ErrUnknown
		}
		s := &l.segs[at]
		h := s.hot
		if h == nil || k >= len(h.parts) {
			return Location{}, false, ErrUnknown
		}
		p := h.parts[k]
		if l.of != nil && p.end == 0 && l.late == at {
			return Location{}, false, nil
		}
		if l.of != nil && p.end == 0 {
			s.taken = true
			return Location{
				NotEncoded: true, MSN: e.first + int64(at), Part: k, Length: l.duration(p.dur),
				Start: s.starts(),
			}, true, nil
		}
		if h.buf != nil && p.end > h.from+int64(len(h.buf)) {
			return Location{}, false, ErrUnknown
		}
		found := Location{
			N: p.end - p.off, Length: l.duration(p.dur), Pixels: l.pixels(s), Init: l.initOf(s),
			Start: s.starts(),
		}
		if found.Data = h.inMemory(&p); found.Data != nil { // the disk is slow, or there is none
			return found, true, nil
		}
		found.File, found.Object, found.Offset = h.media, e.key(l.ID, e.first+int64(at)), p.off
		return found, true, nil
	})
	if hinted && errors.Is(err, ErrTimeout) { // the hint does not come true
		err = ErrUnknown
	}
	return p, err
}

// pixels are those of a segment's picture; 0: there is none, or it is a derived rendition's, which has no init segments
// here.
func (l *liveRendition) pixels(s *segment) int {
	if int(s.init) >= len(l.inits) {
		return 0
	}
	in := &l.inits[s.init]
	return in.Width * in.Height
}

// initOf is what a segment is decoded with; a derived rendition has one init segment for all.
func (l *liveRendition) initOf(s *segment) delivered.Init {
	if int(s.init) >= len(l.inits) {
		return delivered.Init{}
	}
	return delivered.Init{Number: int(s.init), Generation: l.inits[s.init].Generation}
}

// starts is the wall clock of a segment's first frame; zero: unknown.
func (s *segment) starts() time.Time {
	if s.start == 0 {
		return time.Time{}
	}
	return time.UnixMilli(s.start)
}

// ends is the wall clock where the newest segment ends; zero: unknown. Those that were left out have none.
func (l *liveRendition) ends() time.Time {
	for i := len(l.segs) - 1; i >= 0; i-- {
		if starts := l.segs[i].starts(); !starts.IsZero() {
			newest := &l.segs[len(l.segs)-1]
			after := float64(newest.time+newest.dur-l.segs[i].time) / float64(l.Timescale)
			return starts.Add(time.Duration(after * float64(time.Second)))
		}
	}
	return time.Time{}
}

// hintPatience is how long a part that is not there yet is waited for. Players at three parts' distance from live have
// nothing left to show after that long, and Shaka asks for nothing else while a hint has no response. A derived
// rendition's parts take as long as their encoder does. Called with the lock.
func (e *Edge) hintPatience(l *liveRendition) time.Duration {
	if longest := e.longestPart(); longest > 0 && l.of == nil {
		return hls.HoldBack(longest)
	}
	return e.targetDuration()
}

// threeTargets is how long a playlist, or a segment, is waited for, section 6.2.5.2. Called with the lock.
func (e *Edge) threeTargets(*liveRendition) time.Duration { return 3 * e.targetDuration() }

func (e *Edge) targetDuration() time.Duration { return time.Duration(max(e.target, 2)) * time.Second }

// locate finds the part with the name (segment i, k): part `part` of segment `at`, or wait while it may still come; at
// -1: it never does.
func (l *liveRendition) locate(i, k int) (at, part int, wait bool) {
	if i == len(l.segs) {
		return -1, 0, k == 0
	}
	s := &l.segs[i]
	switch {
	case k < int(s.parts):
		return i, k, false
	case k > int(s.parts):
		return -1, 0, !s.done && k <= int(s.parts)+1
	case !s.done:
		return -1, 0, true
	case !l.fulfils(i + 1):
		return -1, 0, false
	case i+1 == len(l.segs) || !l.segs[i+1].done && l.segs[i+1].parts == 0:
		return -1, 0, true
	}
	return i + 1, 0, false
}

// follows reports whether segment i, which may be the one that comes next, goes on where the one before ends: its first
// part is then known by the name of the part that would have come next there, which is what was hinted.
func (l *liveRendition) follows(i int) bool {
	if i == 0 || l.segs[i-1].gap || l.segs[i-1].parts == 0 {
		return false
	}
	if i == len(l.segs) && l.of != nil {
		return l.of.follows(i)
	}
	if i == len(l.segs) {
		return !l.fresh
	}
	s := &l.segs[i]
	return !s.disc && !s.gap && s.init == l.segs[i-1].init
}

// fulfils reports whether segment i, which may be the one that comes next, can be played with the init segment of the
// one before: a player that asked for that one's next part, as was hinted, is given the first part of segment i, behind
// a discontinuity too. Media time has no hole there.
func (l *liveRendition) fulfils(i int) bool {
	if i == 0 || l.segs[i-1].gap || l.segs[i-1].parts == 0 {
		return false
	}
	return i == len(l.segs) || !l.segs[i].gap && l.segs[i].init == l.segs[i-1].init
}

// await runs look, with the lock, now and after every publication on the rendition, until it has a response; for as
// long as patience says, with the lock, when there is none at first.
func (e *Edge) await(
	ctx context.Context, rendition string, patience func(l *liveRendition) time.Duration,
	look func(l *liveRendition) (Location, bool, error),
) (Location, error) {
	var timer *time.Timer
	for {
		p, ok, wait, limit, err := e.ask(rendition, patience, look)
		if ok || err != nil {
			return p, err
		}
		if timer == nil {
			timer = time.NewTimer(limit)
			defer timer.Stop()
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return Location{}, context.Cause(ctx)
		case <-timer.C:
			return Location{}, ErrTimeout
		}
	}
}

// ask runs look once, with the lock, and says what to wait on, and for how long, when it has no response.
func (e *Edge) ask(
	rendition string, patience func(l *liveRendition) time.Duration,
	look func(l *liveRendition) (Location, bool, error),
) (p Location, ok bool, wait chan struct{}, limit time.Duration, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.find(rendition)
	if l == nil {
		return p, false, nil, 0, ErrUnknown
	}
	p, ok, err = look(l)
	switch {
	case err != nil || ok || !e.ended:
	case e.yielded:
		err = ErrMoved
	default:
		err = ErrUnknown
	}
	if ok || err != nil {
		return p, ok, nil, 0, err
	}
	if l.wait == nil {
		l.wait = make(chan struct{})
	}
	return p, false, l.wait, patience(l), nil
}

// advanceLimit is the Advance Part Limit, section 6.2.5.2: how many parts ahead of the edge may be asked for.
func (e *Edge) advanceLimit(l *liveRendition) int {
	target := e.partTarget(l)
	if target <= 0 || target >= time.Second {
		return 3
	}
	return int((3*time.Second + target - 1) / target)
}

// Reload is what a playlist request asks for beyond the playlist itself, section 6.2.5.
type Reload struct {
	Event bool  // the whole recording (EVENT) instead of the sliding window
	MSN   int64 // _HLS_msn; -1: do not wait
	Part  int   // _HLS_part; -1: not given
	Skip  bool  // _HLS_skip
	// TextHoldBack: PART-HOLD-BACK is that of text renditions.
	TextHoldBack bool
}

// Playlist is Listing's text.
func (e *Edge) Playlist(ctx context.Context, rendition string, r Reload, compressed bool) ([]byte, error) {
	l, err := e.Listing(ctx, rendition, r, compressed)
	return l.Text, err
}

// Listing is a rendition's media playlist, plain or compressed with gzip. It waits for the asked media sequence number
// and part; when the edge stands still for three target durations the unchanged playlist is the response, so that
// players keep polling.
func (e *Edge) Listing(ctx context.Context, rendition string, r Reload, compressed bool) (Listing, error) {
	if r.MSN >= 0 {
		_, err := e.await(ctx, rendition, e.threeTargets,
			func(l *liveRendition) (Location, bool, error) { return Location{}, e.reached(l, r), e.sane(l, r) })
		if err != nil && !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrUnknown) {
			return Listing{}, err
		}
	}
	text, out, err := e.current(rendition, listing{r.Event, r.Skip && e.opt.Mode.Low, r.TextHoldBack})
	if err == nil {
		out.Text = text.bytes(compressed) // without the lock: compressing takes its time
	}
	return out, err
}

func (e *Edge) current(rendition string, k listing) (*rendered, Listing, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.find(rendition)
	switch {
	case e.yielded:
		return nil, Listing{}, ErrMoved
	case l == nil && (len(e.renditions) > 0 || e.ended):
		return nil, Listing{}, ErrUnknown
	case l == nil, e.sealed == 0: // of what an earlier process has shown nothing may be recorded
		return nil, Listing{}, ErrNotYet
	}
	text, out := e.rendered(l, k), e.reach(l)
	out.Hint = text.hint
	return text, out, nil
}

// sane refuses what no playlist will say soon, section 6.2.5.2.
func (e *Edge) sane(l *liveRendition, r Reload) error {
	if e.ended {
		return nil // the end is the response to everything
	}
	last := e.first + int64(len(l.segs)) - 1
	if r.MSN > last+2 {
		return ErrTooFar
	}
	if s := l.open(); r.Part >= 0 && s != nil && r.MSN == last && r.Part > int(s.parts)-1+e.advanceLimit(l) {
		return ErrTooFar
	}
	return nil
}

// reached reports whether the playlist lists the asked segment, or part of it. A part past a finished segment's end
// stands for the next segment's first part.
func (e *Edge) reached(l *liveRendition, r Reload) bool {
	i := r.MSN - e.first
	if i < 0 {
		return true
	}
	if i >= int64(len(l.segs)) {
		return false
	}
	s := &l.segs[i]
	if r.Part < 0 || s.done && r.Part < int(s.parts) {
		return s.done
	}
	if !s.done {
		return r.Part < e.listed(l, s)
	}
	return i+1 < int64(len(l.segs)) && (l.segs[i+1].done || e.listed(l, &l.segs[i+1]) > 0)
}

// listed is how many parts of a segment a playlist may show. A segment whose first part is longer than the part target,
// which never changes (the encoder came back with fewer frames a second), is shown when it is whole.
func (e *Edge) listed(l *liveRendition, s *segment) int {
	target := e.partTarget(l)
	if !e.opt.Mode.Low || target == 0 || s.hot == nil || s.gap || s.parts == 0 ||
		l.duration(s.hot.parts[0].dur) > target {
		return 0
	}
	return len(s.hot.parts)
}
