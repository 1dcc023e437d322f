package whip

import (
	"time"

	"millrace/internal/media/frame"
)

// Two RTP clocks begin anywhere, RFC 3550 section 5.1. What tells how they belong together are the sender reports,
// which give a moment of each on one wall clock, section 6.4.1; until both are there it is when the packets arrived.
const (
	reportStep  = 20 * time.Millisecond // a difference up to this is followed slowly, a larger one has to be told twice
	reportShare = 8                     // of a small difference, so much is followed at each report
	reportLimit = 2 * time.Second       // so far from what arrival says is a wall clock that means nothing

	arrivalSpan = time.Second // over which a frame that was not delayed is looked for
	// of sound that is late for two spans: samples were not recorded, and the clock does not count them.
	slipStep = 200 * time.Millisecond
)

// rtpClock is the clock of one track.
type rtpClock struct {
	rate int64 // Hz

	seen bool
	last int64 // newest timestamp, unwrapped

	// smallest arrival - media time in this span and the last one: the frame that was delayed least
	least    time.Duration
	span     time.Duration // the same in this span
	measured bool
	fresh    bool // nothing came in this span

	wall     time.Duration // sender's wall clock - media time, by the last report
	reported bool
}

// unwrap makes a timestamp one that does not wrap. It is that of the nearest one: packets may come out of order.
func (r *rtpClock) unwrap(ts uint32) int64 {
	if !r.seen {
		r.seen, r.last = true, int64(ts)
		return r.last
	}
	at := r.last + int64(int32(ts-uint32(r.last)))
	r.last = max(r.last, at)
	return at
}

// media is how long after timestamp 0 a timestamp is.
func (r *rtpClock) media(ts int64) time.Duration {
	sec, rest := ts/r.rate, ts%r.rate
	return time.Duration(sec)*time.Second + time.Duration(rest*int64(time.Second)/r.rate)
}

// arrived takes the time, on this machine's clock, when a frame's first packet was there.
func (r *rtpClock) arrived(ts int64, at time.Duration) {
	d := at - r.media(ts)
	if !r.measured {
		r.measured, r.least, r.span = true, d, d
	}
	if r.fresh {
		r.fresh, r.span = false, d
	}
	r.least, r.span = min(r.least, d), min(r.span, d)
}

// beginSpan begins a span. Where nothing came in the last one, what was measured before goes on to hold.
func (r *rtpClock) beginSpan() { r.least, r.fresh = r.span, true }

// report takes a sender report: its 64-bit NTP time and the same moment's timestamp.
func (r *rtpClock) report(ntp uint64, ts uint32) {
	if !r.seen { // the timestamp could be anywhere
		return
	}
	at := r.last + int64(int32(ts-uint32(r.last)))
	wall := time.Duration(ntp>>32)*time.Second + time.Duration((ntp&0xffffffff)*uint64(time.Second)>>32)
	r.wall, r.reported = wall-r.media(at), true
}

// clocks puts audio and video on one clock. The picture's clock is what it goes by, and the sound is moved to it, as
// the session has a grid for pictures and can shift sound by a hole or a frame less.
//
// A browser's clock of pictures is the wall clock, but that of its sound counts samples: a machine that is too busy to
// record some leaves it behind for good. Reports tell this after some seconds, and how the frames arrive does before.
type clocks struct {
	tracks   [2]rtpClock
	base     [2]time.Duration // added to media time
	based    [2]bool
	synced   bool          // base of the sound is by reports
	wanted   time.Duration // a larger difference told by the last report
	pending  bool
	baseline [2]time.Duration // least of each track when their relation was known last
	until    time.Duration    // when the span ends
}

// time is where a frame stands.
func (c *clocks) time(k frame.Kind, ts int64) time.Duration {
	t := &c.tracks[k]
	if !c.based[k] {
		c.base[k], c.based[k] = t.least, true
		c.setBaseline()
		c.sync()
	}
	return t.media(ts) + c.base[k]
}

// arrived takes when a frame's first packet was there, and moves sound whose clock stood still for a moment.
func (c *clocks) arrived(k frame.Kind, ts int64, at time.Duration) {
	if at >= c.until {
		c.until = at + arrivalSpan
		for k := range c.tracks {
			c.tracks[k].beginSpan()
		}
	}
	c.tracks[k].arrived(ts, at)
	if slip := c.slip(); k == frame.Audio && slip > slipStep {
		c.base[frame.Audio] += slip
		c.tracks[frame.Audio].wall += slip // what was reported belongs to the time before
		c.setBaseline()
	}
}

// slip is how much later sound arrives than when its place was known last. What the network delays, it delays of the
// picture too.
func (c *clocks) slip() time.Duration {
	if !c.based[frame.Video] || !c.based[frame.Audio] {
		return 0
	}
	video, audio := c.tracks[frame.Video].least-c.baseline[frame.Video],
		c.tracks[frame.Audio].least-c.baseline[frame.Audio]
	return audio - max(video, 0)
}

func (c *clocks) setBaseline() {
	for k := range c.tracks {
		c.baseline[k] = c.tracks[k].least
	}
}

// both reports whether reports of both tracks are there.
func (c *clocks) both() bool { return c.tracks[frame.Video].reported && c.tracks[frame.Audio].reported }

// report takes a sender report of a track.
func (c *clocks) report(k frame.Kind, ntp uint64, ts uint32) {
	c.tracks[k].report(ntp, ts)
	if stepped := c.sync(); stepped || k == frame.Audio {
		c.setBaseline()
	}
}

// sync moves the sound to where reports say that it belongs, and reports whether that was a step.
func (c *clocks) sync() (stepped bool) {
	if !c.both() || !c.based[frame.Video] || !c.based[frame.Audio] {
		return false
	}
	video, audio := &c.tracks[frame.Video], &c.tracks[frame.Audio]
	off := c.base[frame.Video] + audio.wall - video.wall - c.base[frame.Audio]
	arrived := c.base[frame.Video] + audio.least - video.least - c.base[frame.Audio]
	switch size := off.Abs(); {
	case (off - arrived).Abs() > reportLimit:
		return false
	case !c.synced:
		c.synced = true
	case size <= reportStep:
		c.base[frame.Audio] += off / reportShare
		c.pending = false
		return false
	case !c.pending || (off-c.wanted).Abs() > reportStep:
		c.wanted, c.pending = off, true
		return false
	}
	c.base[frame.Audio] += off
	c.pending = false
	return true
}
