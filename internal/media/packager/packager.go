// Package packager cuts one publication's frames into parts and segments. It implements the session's Output and writes
// to an edge, after what earlier publications of the broadcast recorded there. It must never know HTTP, storage, the
// session or who watches. It starts no goroutine: it runs on the publication's own.
//
// Video leads: a segment starts at one of its key frames, and every other rendition starts the segment with the same
// media sequence number at the first frame presented from there on. Without video, audio leads.
package packager

import (
	"fmt"
	"math"
	"slices"
	"time"

	"millrace/internal/media/codec"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// Edge takes what is cut. media/window implements it; its methods say the contract.
type Edge interface {
	Target(seconds int, parts map[string]time.Duration)
	TargetDuration() int
	PartLimit(rendition string) time.Duration
	AddInit(kind frame.Kind, timescale uint32, in timeline.Init, data []byte) int
	Begin(rendition string, m timeline.Mark, init int, at int64)
	Sample(rendition string, at int64, s cmaf.Sample)
	Captions(rendition string, text bool)
	Part(rendition string, buf []byte, ticks int64, independent bool) (done bool)
	Finish(rendition string, ticks int64)
	Live(attached bool)
}

// Options is how to cut.
type Options struct {
	Edge    Edge
	Segment time.Duration // wanted length of a segment; key frames decide
	Part    time.Duration // longest part
	// Where the recording stands: seconds of media time where it ends, by how much its last pictures are presented
	// later than they are decoded, and the renditions that exist.
	At         float64
	Lag        time.Duration
	Began      bool
	Renditions []Rendition
	Slate      bool // what is cut stands in for an encoder that is away
	// Captions takes the closed captions of the pictures; nil: nobody wants them.
	Captions Captions
}

// Rendition is a rendition that the recording has already.
type Rendition struct {
	timeline.RenditionInfo
	Next int64 // ticks: where its media ends
}

const (
	videoTimescale = 90000
	// longest is the cut that needs no key frame while the target duration is not known: the longest GOP that is let
	// be.
	longest = 21 * time.Second
	// maxSegmentBytes cuts a segment whatever its length.
	maxSegmentBytes = 48 << 20
	// partSlack is how much a part's frames may stretch when the session follows a drifting encoder.
	partSlack = 2 * time.Millisecond
	// audioSlack is the same for sound, whose frames are of one length. Its segment may be longer by soundSlack.
	audioSlack, soundSlack = time.Millisecond, 100 * time.Millisecond
	// littleLag is how much earlier than the sound pictures may end though none is presented late.
	littleLag = 100 * time.Millisecond
	// audioPatience is how far the video may be ahead before the audio's segment is closed without waiting for its
	// frames, and how much audio waits for a video that stands still.
	audioPatience = time.Second
	// unevenPatience is the same where pictures come at a variable rate, which may stay away of themselves.
	unevenPatience = 2 * time.Second
)

// Packager is one publication's cutter.
type Packager struct {
	opt     Options
	base    time.Duration // media time of the publication's clock at 0
	wall    time.Time     // wall clock of media time 0
	begun   bool          // the clocks are set
	wallDue bool          // the next frame tells the wall clock again
	cut     bool          // the next key frame begins a segment
	disc    bool          // the next segment does not continue the last one
	slate   bool          // the next segment stands in for an encoder that is away

	video, audio *track
	// Renditions of the recording that have no media now: not (yet) in this publication, or standing still.
	orphans  []*track
	fps      float64
	constant bool

	cuts   []cut         // where segments of the lead began that the audio has not begun yet
	held   []frame.Frame // audio that is presented later than the video has come
	early  []frame.Frame // audio in front of the first picture
	gop    gopMeter
	shown  time.Duration // media time where the last picture's presentation ends
	uneven uneven        // pictures at a variable rate
	lag    time.Duration // from decoding to presentation, of the last key frame
	sound  time.Duration // a frame of the audio, the last one

	captions codec.Captions // the most that any picture had
	searched int            // so many pictures were looked at

	arrival arrival
}

// New returns a Packager for one publication.
func New(o Options) *Packager {
	p := &Packager{opt: o, disc: o.Began, slate: o.Slate, arrival: newArrival(), lag: o.Lag}
	for _, r := range o.Renditions {
		t := newTrack(o.Edge, r.ID, r.Kind, r.Timescale)
		t.next = r.Next
		p.orphans = append(p.orphans, t)
		if r.ID == timeline.MainVideo && o.Began && o.Lag == 0 {
			p.opt.Lag = lagOf(time.Duration(o.At*float64(time.Second)) - t.duration(t.next))
		}
	}
	return p
}

// lagOf is by how much the pictures before were presented later than they were decoded, which nobody knows after a
// crash: so much earlier than the sound they end. What is little needs not be known, and more than a second is
// something else.
func lagOf(behind time.Duration) time.Duration {
	if behind <= littleLag || behind > time.Second {
		return 0
	}
	return behind
}

// Accepts says why a track can not be packaged, as VP8; nil when it can.
func Accepts(c frame.Config) error {
	if _, err := cmaf.SampleEntry(c); err != nil {
		return fmt.Errorf("package %s: %w", c.Kind, err)
	}
	return nil
}

// Configure implements the session's output.
func (p *Packager) Configure(c frame.Config) error {
	t := p.track(c.Kind)
	if c.Kind == frame.Audio { // what waits belongs to the old parameters
		p.keepBack(nil)
	}
	t.config, t.stale = c, true
	return nil
}

// track finds or makes the track of a kind; one that the recording knows already is taken over.
func (p *Packager) track(k frame.Kind) *track {
	slot, name, scale := &p.audio, timeline.MainAudio, uint32(0)
	if k == frame.Video {
		slot, name, scale = &p.video, timeline.MainVideo, videoTimescale
	}
	if *slot != nil {
		return *slot
	}
	for _, o := range p.orphans {
		if o.id == name {
			*slot = o
			return o
		}
	}
	*slot = newTrack(p.opt.Edge, name, k, scale)
	return *slot
}

// Rate implements the session's output.
func (p *Packager) Rate(fps float64, constant bool) error {
	p.fps, p.constant, p.uneven.on = fps, constant, !constant
	p.arrival.alone = audioPatience
	if !constant {
		p.arrival.alone = unevenPatience
	}
	return nil
}

// Discontinuity implements the session's output: what is open ends here. Sound that is ahead of the picture belongs to
// what follows.
func (p *Packager) Discontinuity(string) error {
	if !p.begun {
		return nil
	}
	p.opt.Edge.Live(false)
	err := p.finish()
	p.opt.Edge.Live(true)
	p.disc, p.wallDue = true, true
	if p.video != nil && p.video.joined { // it comes back with its key frame; if it stays away the sound goes on alone
		p.leave(p.video)
	}
	return err
}

// Close implements the session's output.
func (p *Packager) Close(error) error {
	if early := p.early; len(early) > 0 {
		p.early = nil
		p.begin(&early[0])
		for _, f := range early {
			if err := p.write(f); err != nil {
				return err
			}
		}
	}
	p.opt.Edge.Live(false)
	p.standToEnd()
	err := p.finish()
	p.keepBack(nil)
	return err
}

// Write implements the session's output.
func (p *Packager) Write(f frame.Frame) error {
	if p.begun {
		return p.write(f)
	}
	if f.Kind == frame.Video && !f.Key {
		return nil
	}
	first := &f
	if f.Kind == frame.Audio && p.video != nil { // announced: the recording begins with it
		p.early = append(p.early, f)
		if f.PTS-p.early[0].PTS < maxLate {
			return nil
		}
		first = &p.early[0]
	}
	p.begin(first)
	if f.Kind == frame.Video || p.video == nil {
		if err := p.write(f); err != nil {
			return err
		}
	}
	early := p.early
	p.early = nil
	for _, e := range early {
		if err := p.write(e); err != nil {
			return err
		}
	}
	return nil
}

func (p *Packager) write(f frame.Frame) error {
	if p.wallDue {
		p.wallDue = false
		p.setWall(&f)
	}
	f.DTS += p.base
	f.PTS += p.base
	p.arrival.came(&f)
	if f.Kind == frame.Video {
		return p.writeVideo(f)
	}
	switch p.held = append(p.held, f); {
	case p.video == nil || !p.video.joined:
		return p.leadHeld(p.leadUntil(&f))
	case p.videoStands(&f):
		return p.parkVideo()
	}
	if p.uneven.still(&f, p.arrival.sinceLast(frame.Video)) {
		p.video.standStill(min(f.PTS-p.lag, p.video.duration(p.video.first)+p.limit()))
	}
	return p.release(p.heldUntil())
}

// begin sets the clocks with the first frame: a recording starts so that this frame is presented at Origin, and one
// that goes on so that a picture is presented where the last one ends. It may be decoded before that, in the time that
// the last one waited for its presentation.
func (p *Packager) begin(f *frame.Frame) {
	p.begun = true
	p.base = time.Duration(p.opt.At*float64(time.Second)) - (f.PTS - f.DTS)
	for _, o := range p.opt.Renditions {
		const frame = 50 * time.Millisecond // of sound, that may end a little later
		next := newTrack(nil, o.ID, o.Kind, o.Timescale).duration(o.Next)
		if end := p.opt.Lag + next - (f.PTS - f.DTS); o.ID == timeline.MainVideo && end > p.base-frame {
			p.base = end
		}
	}
	if !p.opt.Began {
		p.base = timeline.Origin*time.Second - f.PTS
	}
	p.setWall(f)
	p.opt.Edge.Live(true)
}

// setWall ties the wall clock to media time: f, not yet on it, is presented when it was received.
func (p *Packager) setWall(f *frame.Frame) { p.wall = f.Received.Add(-p.base - f.PTS) }

// Lag is by how much the pictures written last are presented later than they are decoded.
func (p *Packager) Lag() time.Duration { return p.lag }

// lagOf is by how much what comes next of a track is presented later than it is decoded.
func (p *Packager) lagOf(t *track) time.Duration {
	if t.kind == frame.Video {
		return p.lag
	}
	return 0
}

// leadUntil is how far the audio leads, f being its newest: no further than a picture that comes, and joins with a key
// frame, which would be behind what the audio has led if it arrives later than that.
func (p *Packager) leadUntil(f *frame.Frame) time.Duration {
	if p.video == nil || p.arrival.away(frame.Video) {
		return f.PTS + 1
	}
	return max(min(p.arrival.newest[frame.Video], f.PTS)+1, f.PTS-maxLate)
}

// heldUntil is how far the video has come: no later key frame is presented before that.
func (p *Packager) heldUntil() time.Duration {
	until := p.video.end
	if n := len(p.held); n > 0 {
		until = max(until, p.held[n-1].PTS-p.arrival.patience(frame.Video))
	}
	return until
}

// release packs the held audio that is presented before `until`.
func (p *Packager) release(until time.Duration) error {
	n := 0
	for ; n < len(p.held) && p.held[n].PTS < until; n++ {
		if len(p.cuts) == 0 && p.audioIsFull(&p.held[n]) {
			p.keepBack(p.held[n:])
			return p.parkVideo()
		}
		p.followAudio(p.held[n])
	}
	p.keepBack(p.held[n:])
	return nil
}

// leadHeld cuts the held audio that is presented before `until` by itself.
func (p *Packager) leadHeld(until time.Duration) error {
	n := 0
	for ; n < len(p.held) && p.held[n].PTS < until; n++ {
		if err := p.leadAudio(p.held[n]); err != nil {
			return err
		}
	}
	p.keepBack(p.held[n:])
	return nil
}

// keepBack keeps a tail of the held audio.
func (p *Packager) keepBack(tail []frame.Frame) {
	n := copy(p.held, tail)
	clear(p.held[n:])
	p.held = p.held[:n]
}

// finish ends what is open in every rendition at the end of the video, or of the audio without video.
func (p *Packager) finish() error {
	p.endCaptions()
	var err error
	if p.video == nil || !p.video.joined {
		err = p.leadHeld(math.MaxInt64)
	}
	if p.soundWentOn() {
		err = p.parkVideo()
	}
	if lead := p.lead(); lead != nil && lead.open {
		if lead == p.video && p.uneven.on {
			lead.standUntil(min(p.uneven.until(), lead.duration(lead.first)+p.limit()))
		}
		if lead == p.video && p.audio != nil && p.audio.joined {
			p.finishAudio(lead.end + p.lag)
			p.sayTarget(max(lead.elapsed(), p.audio.elapsed()))
		}
		p.closeLead(lead)
	}
	p.cuts = nil
	return err
}

// standToEnd has the picture last as long as it is presented where an encoder left in front of its last B-frames: of
// what it had decoded already something is presented later than usual, and what follows begins behind that.
func (p *Packager) standToEnd() {
	v := p.video
	if v == nil || !v.joined || !v.open || p.soundWentOn() {
		return
	}
	if more := v.ticks(min(p.shown-v.end-p.lag, p.limit()-v.elapsed(), audioPatience)); more > 0 {
		v.flush()
		v.next += more
		v.end = v.duration(v.next)
	}
}

// finishAudio packs the audio up to where the video is presented, to the nearest frame.
func (p *Packager) finishAudio(end time.Duration) {
	n := 0
	for ; n < len(p.held) && p.held[n].PTS+p.held[n].Duration/2 <= end; n++ {
		p.followAudio(p.held[n])
	}
	p.keepBack(p.held[n:])
	for range p.cuts {
		p.nextAudio()
	}
	p.audio.reach(min(end, p.audio.duration(p.audio.first)+p.limit()+soundSlack), p.sound)
	p.audio.conclude(end, p.limit())
}

// closeLead ends the lead's segment. The first one that ends says the target duration.
func (p *Packager) closeLead(lead *track) {
	p.sayTarget(lead.elapsed())
	lead.finish()
	p.closeOrphans(lead)
}

// sayTarget says the target duration of segments of which one is that long.
func (p *Packager) sayTarget(long time.Duration) {
	least := int(p.opt.Segment / time.Second)
	p.opt.Edge.Target(max(least, int(math.Ceil(long.Seconds()-0.1))), nil)
}

func (p *Packager) lead() *track {
	if p.video != nil && p.video.joined {
		return p.video
	}
	return p.audio
}

// join takes a track out of the orphans: from the segment that begins now on it has media. Its first join says its part
// target.
func (p *Packager) join(t *track) error {
	if err := t.prepare(p.fps); err != nil {
		return err
	}
	t.joined = true
	p.orphans = slices.DeleteFunc(p.orphans, func(o *track) bool { return o == t })
	if t.partTarget > 0 {
		return nil
	}
	slack := audioSlack
	if t == p.video {
		t.partTarget, slack = p.videoPart(), partSlack
	} else {
		t.partTarget = p.audioPart()
	}
	p.opt.Edge.Target(0, map[string]time.Duration{t.id: t.duration(t.partTarget) + slack})
	t.limit = t.ticks(p.opt.Edge.PartLimit(t.id))
	t.least = (t.limit*85 + 99) / 100
	return nil
}

// leave makes a track an orphan.
func (p *Packager) leave(t *track) {
	t.joined = false
	p.orphans = append(p.orphans, t)
}

// videoStands reports whether audio has gone on alone for longer than a segment may last.
func (p *Packager) videoStands(f *frame.Frame) bool {
	return p.arrival.away(frame.Video) && p.audio.open && len(p.cuts) == 0 && f.PTS > p.video.end+p.arrival.alone &&
		f.PTS-p.audio.from > p.limit()
}

// soundWentOn reports whether the open segment has audio without pictures at its end.
func (p *Packager) soundWentOn() bool {
	if p.video == nil || !p.video.joined || !p.video.open || p.audio == nil || !p.audio.open || len(p.cuts) > 0 ||
		!p.arrival.away(frame.Video) {
		return false
	}
	return p.arrival.newest[frame.Audio] > p.video.end+p.lag+p.arrival.alone
}

// parkVideo lets the audio lead while the video stands still; the video joins again with its next key frame.
func (p *Packager) parkVideo() error {
	v, a := p.video, p.audio
	n := 0
	for ; n < len(p.held) && a.elapsed()+p.held[n].Duration <= p.limit(); n++ {
		p.followAudio(p.held[n])
	}
	p.keepBack(p.held[n:])
	v.flush()
	v.standBeside(a.end-p.lag, p.limit())
	a.finish()
	p.closeLead(v)
	p.leave(v)
	return p.leadHeld(math.MaxInt64)
}

// limit is how long a segment may last, key frame or not.
func (p *Packager) limit() time.Duration {
	if target := p.opt.Edge.TargetDuration(); target > 0 {
		// EXTINF rounds to the target, also the sound's, which may last a frame longer
		return time.Duration(target)*time.Second + 350*time.Millisecond
	}
	return longest
}

// closeOrphans gives renditions without media a gap as long as the lead's segment.
func (p *Packager) closeOrphans(lead *track) {
	for _, o := range p.orphans {
		o.gap(p.cutAt(lead.from, lead.mark), p.lagOf(o), lead.last)
	}
}
