package packager

import (
	"fmt"
	"time"

	"millrace/internal/media/codec"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// track is one rendition being cut.
type track struct {
	edge   Edge
	id     string
	kind   frame.Kind
	scale  uint32 // ticks per second; 0 until the first configuration of an audio track
	config frame.Config
	stale  bool // config is not in an init segment yet
	init   int
	joined bool // it has media in this publication, from some segment on

	wait *cut          // a follower's next segment: it begins with its first frame
	open bool          // a segment is open
	mark timeline.Mark // that segment's
	from time.Duration // media time where it begins (presentation)
	end  time.Duration // media time (decoding) where what is written ends
	last time.Duration // length of the segment finished last
	goes bool          // the next segment goes on at next: the last one had media

	other bool       // the next sample is the first of pictures that do not continue those before
	start cmaf.Start // how decode times are moved behind it

	first    int64 // ticks: where the open segment begins
	next     int64 // ticks: where the next sample begins
	sequence uint32
	buf      []byte // the parts of the open segment that the edge still needs
	done     int    // bytes of the open segment in front of buf
	size     int    // what buf came to in the last segment, for its capacity in the next one

	pending     []cmaf.Sample
	pendingAt   int64 // ticks
	pendingLong int64 // ticks
	pendingKey  bool
	partTarget  int64 // ticks: how long parts are made
	limit       int64 // ticks: PART-TARGET as it was said, perhaps for an encoder before this one
	least       int64 // ticks: the shortest part but for a segment's last, 85 % of limit
	foreseen    int64 // ticks: how long the open segment is expected to get; 0: nobody knows
}

func newTrack(e Edge, id string, k frame.Kind, scale uint32) *track {
	return &track{edge: e, id: id, kind: k, scale: scale}
}

// ticks converts a time to the track's scale, rounded.
func (t *track) ticks(d time.Duration) int64 {
	s := int64(d / time.Second)
	rest := int64(d % time.Second)
	return s*int64(t.scale) + (rest*int64(t.scale)+int64(time.Second)/2)/int64(time.Second)
}

func (t *track) duration(ticks int64) time.Duration {
	s := int64(t.scale)
	return time.Duration(ticks/s)*time.Second + time.Duration(ticks%s)*time.Second/time.Duration(s)
}

// prepare puts a new configuration into an init segment; the rendition exists from then on.
func (t *track) prepare(fps float64) error {
	if !t.stale {
		return nil
	}
	if t.scale == 0 {
		t.scale = uint32(t.config.SampleRate)
	}
	data, err := cmaf.Init(t.config, t.scale)
	if err != nil {
		return fmt.Errorf("write init segment of %s: %w", t.id, err)
	}
	in := timeline.Init{
		Rendition: t.id, Codec: codec.Name(t.config), Width: t.config.Width, Height: t.config.Height,
		SampleRate: t.config.SampleRate, Channels: t.config.Channels,
	}
	if t.kind == frame.Video {
		in.FrameRate, in.Range = fps, codec.Range(t.config)
	}
	t.init = t.edge.AddInit(t.kind, t.scale, in, data)
	t.stale = false
	return nil
}

// begin opens a segment that starts with a sample at ticks.
func (t *track) begin(c cut, at int64) {
	t.open, t.wait, t.mark, t.from = true, nil, c.Mark, c.at
	t.first, t.next = at, at
	t.other = c.Discontinuity && t.kind == frame.Video
	if t.size > 0 {
		t.buf = make([]byte, 0, t.size+t.size/8+4096)
	}
	t.edge.Begin(t.id, c.Mark, t.init, at)
}

// beginSound is begin for sound, which is presented when it is decoded: the segment has the date of its own first
// sample, up to a frame from the picture's cut.
func (t *track) beginSound(c cut, at int64) {
	c.Start = c.Start.Add(t.duration(at) - c.at)
	t.begin(c, at)
}

// add appends a sample of some ticks to the pending part.
func (t *track) add(s cmaf.Sample) {
	if len(t.pending) == 0 {
		t.pendingAt, t.pendingKey = t.next, s.Sync
	}
	if t.kind == frame.Video {
		s.CompositionOffset = t.start.Offset(t.next, s.CompositionOffset)
	}
	t.edge.Sample(t.id, t.start.At(t.next), s)
	t.pending = append(t.pending, s)
	t.pendingLong += int64(s.Duration)
	t.next += int64(s.Duration)
	t.end = t.duration(t.next)
}

// startWith begins other pictures with a sample that is shown for so many ticks. What is moved has to lie in one part,
// whose length does not change by it.
func (t *track) startWith(s *cmaf.Sample, shown int64) {
	t.other, t.start = false, cmaf.StartAt(t.next, int64(s.CompositionOffset), shown)
	if t.start.Long() > t.partTarget {
		t.start = cmaf.Start{}
	}
}

// full is how long the pending part may get, in ticks. One that began with a picture that is shown for a shorter time,
// behind other media, has room for one more.
func (t *track) full() int64 {
	if t.pendingLong < t.least {
		return t.limit
	}
	return t.partTarget + t.ticks(partSlack)
}

// fitting is how much of `more` ticks the pending part may get so that, with frames of the given length behind it, it
// ends neither too short nor too long. The rest is for the parts behind it.
func (t *track) fitting(more, frame int64) int64 {
	long := t.pendingLong + more
	if frame <= 0 || long >= t.least {
		return more
	}
	frames := (t.least - long + frame - 1) / frame
	return max(more-max(long+frames*frame-t.limit, 0), 0)
}

// place has the pending part wait for the picture f, or ends it, and gives how many ticks f lasts. What of a hole is
// left, behind a part that is out already or full, is put in front of f: decoded early, presented in time; and in front
// of the pictures behind, where that would make its part or segment longer than said. Decoding times are the encoder's,
// but for the first ones behind a discontinuity, see cmaf.Start.
func (t *track) place(f *frame.Frame, constant bool, limit time.Duration) int64 {
	at, end := t.ticks(f.DTS), t.ticks(f.DTS+f.Duration)
	each := int64(0) // of a constant rate
	if constant {
		each = end - at
	}
	if hole := at - t.next; hole > 0 && len(t.pending) > 0 { // something was lost, or the rate is variable
		t.stand(t.fitting(hole, each), t.full()) // the picture before stands until this one
	}
	long := min(max(end-t.next, 1), t.partTarget+t.ticks(partSlack), max(t.room(limit), each, 1))
	switch room := t.full() - t.pendingLong; {
	case len(t.pending) == 0 || long <= room:
	case t.pendingLong < t.least && room >= each:
		long = max(room, 1)
	default:
		t.flush()
	}
	return max(t.fitting(long, each), min(long, each))
}

// stand has the last pending sample last for so many ticks more, as far as its part may be full ticks long. What would
// be longer is a part then.
func (t *track) stand(more, full int64) {
	fill := max(min(more, full-t.pendingLong), 0)
	t.pending[len(t.pending)-1].Duration += uint32(fill)
	t.pendingLong += fill
	t.next += fill
	if fill < more {
		t.flush()
	}
}

// flush makes the pending samples a part.
func (t *track) flush() {
	if len(t.pending) == 0 {
		return
	}
	t.sequence++
	at := t.start.Move(t.pendingAt, t.pending)
	lent := t.buf == nil
	if lent {
		t.buf = lend()
	}
	t.buf = cmaf.AppendFragment(t.buf, t.sequence, cmaf.TrackID, uint64(at), t.pending)
	if t.edge.Part(t.id, t.buf, t.pendingLong, t.pendingKey) {
		t.done += len(t.buf)
		if lent { // else viewers may be reading what waited in there
			giveBack(t.buf)
		}
		t.buf = nil
	}
	clear(t.pending)
	t.pending, t.pendingLong = t.pending[:0], 0
}

// finish closes the open segment.
func (t *track) finish() {
	t.flush()
	t.open = false
	t.last = t.duration(t.next - t.first)
	t.size = len(t.buf)
	t.buf, t.done, t.goes = nil, 0, true
	t.edge.Finish(t.id, t.next-t.first)
}

// conclude ends the current segment of a follower at media time end; one that got no frame is a gap, no longer than a
// segment may last.
func (t *track) conclude(end, longest time.Duration) {
	switch {
	case t.open:
		t.finish()
	case t.wait != nil:
		c := *t.wait
		t.wait = nil
		t.gap(c, 0, min(end-c.at, longest))
	}
}

// reach has the open segment last until media time end at least, where another rendition ends: what follows begins at
// one place in all of them, and the lengths of their segments are to add up to the same. What is less than half a frame
// is the next one's.
//
// The last sample stands until then, so that players have no hole in front of what follows, as far as its part may be
// long.
func (t *track) reach(end, frame time.Duration) {
	if !t.open || t.ticks(end-frame/2) <= t.next {
		return
	}
	if len(t.pending) > 0 {
		t.stand(t.ticks(end)-t.next, t.limit)
	}
	t.flush()
	t.next = max(t.next, t.ticks(end))
}

// align is where a segment begins whose first sample is at ticks: nothing overlaps, and decoding time has no hole where
// media goes on; the sample is then decoded early and presented in time. Where other media begins it has none of up to
// small ticks.
func (t *track) align(at, small int64, disc bool) int64 {
	if at <= t.next+2 || t.goes && !disc || t.next > 0 && at <= t.next+small {
		return t.next
	}
	return at
}

// passed reports whether f is too late: what begins with it would be presented too late, behind what stands there
// already; of other media the next frame is nearer to that.
func (t *track) passed(f *frame.Frame, disc bool) bool {
	step := 40 * time.Millisecond
	if disc {
		step = min(step, f.Duration/2)
	}
	return t.next-t.ticks(f.DTS) > t.ticks(step)+2
}

// gap is a segment without media. It begins where the one before ends, if that is near, and is dated as what would be
// decoded there: by lag earlier than it is presented.
func (t *track) gap(c cut, lag, long time.Duration) {
	const near = 100 * time.Millisecond
	at := max(t.next, t.ticks(c.at-lag))
	end := at + t.ticks(max(long, time.Millisecond))
	if t.next > 0 && at-t.next <= t.ticks(near) {
		at = t.next
	}
	c.Start = c.Start.Add(t.duration(at) + lag - c.at)
	t.edge.Begin(t.id, c.Mark, t.init, at)
	t.next = end
	t.goes = false
	t.edge.Finish(t.id, t.next-at)
}

// standBeside has the last picture stand until media time end, as long as the segment may last.
func (t *track) standBeside(end, longest time.Duration) {
	t.next = max(t.next, min(t.ticks(end), t.first+t.ticks(longest)))
}

// bytes is the size of the open segment.
func (t *track) bytes() int { return t.done + len(t.buf) }

// elapsed is the length of the open segment.
func (t *track) elapsed() time.Duration { return t.duration(t.next - t.first) }

// room is how many ticks the open segment may still get, of a segment that may last so long.
func (t *track) room(long time.Duration) int64 { return max(t.first+t.ticks(long)-t.next, 0) }
