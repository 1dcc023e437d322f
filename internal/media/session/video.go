package session

import (
	"bytes"
	"time"

	"millrace/internal/media/frame"
)

const (
	probeFrames    = 10          // enough when the parameter sets announce a rate that fits
	probeTime      = time.Second // enough in any case, of stream time,
	leastProbed    = 3           // with so many: one distance makes no grid by itself
	probeWall      = 2 * time.Second
	maxProbeFrames = 256
	maxProbeBytes  = 32 << 20

	gridSlack    = 2 * time.Millisecond // a smoothed error beyond this is followed
	gridFollow   = time.Millisecond     // by at most this in a second
	gridStray    = 8 * time.Millisecond // a frame further off than this does not stand on the grid
	offsetStray  = 3 * time.Millisecond / 2
	maxStrays    = 12 // a stray counts 4, a frame on the grid takes 1 away
	strayWeight  = 4
	windowFrames = 64
	maxOffset    = 5 * time.Second // of PTS after DTS: 16 frames at 3 per second
	minOffset    = -500 * time.Millisecond
	minFrame     = time.Millisecond
	maxSure      = 20 * time.Millisecond // of a frame at a variable rate: the next one may be late by that, of itself
)

// videoTrack puts frames on their grid when there is one. Else each keeps its own time, and how long it lasts is said
// by the next one: until then it is known to last a little.
type videoTrack struct {
	s       *Session
	config  *frame.Config // as told to the output; nil before
	next    *frame.Config // to be told at the next key frame
	started bool
	rate    rate
	grid    grid
	end     time.Duration // DTS + Duration of the last written frame
	came    time.Duration // when the last frame was due that came here
	shift   time.Duration // added to every PTS because the encoder's are before its DTS
	drift   time.Duration // smoothed: encoder's time - grid

	followed time.Duration // when a duration was last changed to follow
	strays   int
	early    time.Duration // how far off the last frame was when it came too early, 0 when it did not
	tooEarly int           // frames in a row that came too early

	last     frame.Frame // as the encoder sent it
	spacing  spacing
	window   [windowFrames]time.Duration // times of the last frames
	windowed int
	patience int // windows on a grid that are wanted before it is believed in
	calm     int
}

// begin sets the rate and tells it to the output.
func (v *videoTrack) begin(r rate, at time.Duration) error {
	v.rate = r
	v.grid = newGrid(r.interval, at)
	v.started = true
	v.strays, v.tooEarly, v.early, v.windowed, v.calm = 0, 0, 0, 0, 0
	v.drift, v.followed = 0, at
	v.s.continuity.tracks[frame.Video].step = r.interval.duration()
	v.s.continuity.tracks[frame.Video].fixed = r.constant
	v.s.stats.FPS, v.s.stats.Constant = r.fps, r.constant
	return v.s.out.Rate(r.fps, r.constant)
}

// configure tells the output the waiting configuration; i is the key frame that comes first with it.
func (v *videoTrack) configure() error {
	c := v.next
	v.next = nil
	before := 0.0
	if v.config != nil {
		before = v.config.FrameRate
	}
	v.config = c
	if err := v.s.out.Configure(*c); err != nil {
		return err
	}
	if !v.started || c.FrameRate == before {
		return nil
	}
	if i, ok := rational(c.FrameRate); ok && i != v.rate.interval {
		return v.begin(rate{i, true, i.fps()}, v.end)
	}
	return nil
}

// offset is PTS - DTS in bounds; a negative one moves all that follows, once.
func (v *videoTrack) offset(i item) time.Duration {
	o := i.offset()
	if o < minOffset || o > maxOffset {
		v.s.stats.Clamped++
		o = 0
	}
	if o += v.shift; o < 0 {
		v.shift -= o
		v.s.stats.Clamped++
		o = 0
	}
	return o
}

// repeated reports whether a frame is the one before it, sent once more: the same bytes with the same times.
func (v *videoTrack) repeated(f frame.Frame) bool {
	last := v.last
	v.last = f
	return last.Data != nil && f.DTS == last.DTS && f.PTS == last.PTS && bytes.Equal(f.Data, last.Data)
}

// write takes a frame that is due at t on the output's clock.
func (v *videoTrack) write(i item, t time.Duration) error {
	i.at = t
	again := t == v.came && v.s.stats.VideoFrames > 0
	if v.s.stats.VideoFrames > 0 {
		v.spacing.saw(t - v.came)
	}
	v.came = t
	// two in one place, as fields or slices that come by themselves: none is one more picture
	if again && v.rate.constant {
		if err := v.leaveGrid(); err != nil {
			return err
		}
	}
	if v.rate.constant {
		return v.onGrid(i)
	}
	return v.variable(i)
}

func (v *videoTrack) onGrid(i item) error {
	step := v.rate.interval.duration()
	off := i.at - v.grid.at(0)
	stray := false
	if off >= step*6/10 {
		n := int64((off + step/2) / step)
		v.grid.advance(n)
		v.s.stats.Lost += n
		off = i.at - v.grid.at(0)
	}
	switch early := off < -gridStray; {
	case off > gridStray && off < step, early && v.grid.at(0)+off >= v.end:
		stray = true // between two places: its own time is nearer to the sound
		v.grid.shift(off)
		off = i.at - v.grid.at(0)
	case early:
		stray = true
		v.s.stats.Clamped++
	}
	if err := v.countStray(i, stray, off); err != nil || !v.rate.constant {
		return err
	}
	if !stray {
		v.drift += (off - v.drift) / time.Duration(min(max(int64(v.rate.fps), 4), 64))
	}
	o := v.offset(i)
	f := i.Frame
	f.DTS = v.grid.at(0)
	f.PTS = f.DTS + o
	if n := int64((o + step/2) / step); n >= 0 && abs(o-time.Duration(n)*step) <= max(offsetStray, step/10) {
		f.PTS = v.grid.at(n)
	}
	v.grid.advance(1)
	v.follow(f.DTS)
	v.end = v.grid.at(0)
	f.Duration = v.end - f.DTS
	v.s.stats.VideoFrames++
	return v.s.out.Write(f)
}

// follow changes the grid by a little when the encoder's clock runs differently. It is done before the frame goes out,
// so that its duration says it.
func (v *videoTrack) follow(now time.Duration) {
	if abs(v.drift) <= gridSlack || now-v.followed < time.Second {
		return
	}
	by := min(max(v.drift, -gridFollow), gridFollow)
	v.grid.shift(by)
	v.drift -= by
	v.followed = now
}

// countStray gives the grid up when frames keep missing it. A clock that went back by a constant amount is not that:
// all tracks go on from where the picture is.
func (v *videoTrack) countStray(i item, stray bool, off time.Duration) error {
	if off < -gridStray && abs(off-v.early) < gridStray/2 {
		if v.tooEarly++; v.tooEarly >= 2 {
			v.s.continuity.slip(-off)
			v.tooEarly, v.early, v.strays = 0, 0, 0
			return nil
		}
	} else {
		v.tooEarly = 0
	}
	v.early = off
	if !stray {
		v.strays = max(0, v.strays-1)
		if abs(v.drift) < gridStray {
			return nil
		}
	}
	if v.strays += strayWeight; v.strays < maxStrays {
		return nil
	}
	if err := v.leaveGrid(); err != nil {
		return err
	}
	return v.variable(i)
}

// leaveGrid has frames go by their own times until they have stood on a grid for longer than before.
func (v *videoTrack) leaveGrid() error {
	v.patience = min(2*v.patience+1, 32)
	return v.begin(rate{interval: v.rate.interval, fps: v.rate.fps}, v.end)
}

// variable writes a frame at its own time, for as long as it lasts in any case.
func (v *videoTrack) variable(i item) error {
	at, pts := i.at, i.at+v.offset(i)
	if at < v.end {
		v.s.stats.Clamped++
		at = v.end
	}
	if r, ok := v.look(i.at); ok {
		if err := v.begin(r, at); err != nil {
			return err
		}
		i.at = at
		return v.onGrid(i)
	}
	f := i.Frame
	f.DTS, f.PTS, f.Duration = at, max(pts, at), v.spacing.sure(v.rate.interval.duration())
	v.end = f.DTS + f.Duration
	v.s.stats.VideoFrames++
	return v.s.out.Write(f)
}

// look keeps the times of frames and tells when they have come to stand on a grid.
func (v *videoTrack) look(t time.Duration) (rate, bool) {
	if v.windowed > 0 && t <= v.window[v.windowed-1] {
		v.windowed, v.calm = 0, 0
		return rate{}, false
	}
	v.window[v.windowed] = t
	if v.windowed++; v.windowed < windowFrames {
		return rate{}, false
	}
	r := classify(v.window[:], v.config.FrameRate)
	v.windowed = 0
	if !r.constant {
		v.calm = 0
		return rate{}, false
	}
	v.calm++
	return r, v.calm > v.patience
}

// spacing remembers how close to each other frames came of late.
type spacing struct {
	least  time.Duration // of the last few
	before time.Duration // of windowFrames before those; 0: there are none
	seen   int           // frames that least is of
}

// saw takes the distance of a frame from the one before it.
func (s *spacing) saw(d time.Duration) {
	d = max(d, minFrame)
	if s.seen == windowFrames {
		s.before, s.seen = s.least, 0
	}
	if s.seen == 0 || d < s.least {
		s.least = d
	}
	s.seen++
}

// sure is how long a frame lasts in any case: half of what the shortest did of late. What it lasts longer costs
// nothing, and one that comes sooner than that is decoded late, and shown late unless it waits for B-frames anyway.
func (s *spacing) sure(usual time.Duration) time.Duration {
	d := usual
	if s.seen > 0 {
		d = s.least
	}
	if s.before > 0 {
		d = min(d, s.before)
	}
	return min(max(d/2, minFrame), maxSure)
}

func abs(d time.Duration) time.Duration {
	if d < 0 {
		return -d
	}
	return d
}
