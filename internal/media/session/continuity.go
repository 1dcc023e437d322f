package session

import (
	"fmt"
	"time"

	"millrace/internal/media/frame"
)

const (
	// more than this beyond where the next frame is due, on every track, is a jump.
	jumpForward  = time.Second
	jumpBackward = 500 * time.Millisecond // more than this backwards is a jump, less is a step that is smoothed away
	// a hole up to this is taken as it is, of a larger one a second frame has to tell as well.
	believed  = 150 * time.Millisecond
	slowFrame = 5 * time.Second  // a video alone at a variable rate may stand still for this long in real time
	slowHole  = 4                // distances of few pictures that may pass, in real time too, without one
	unrelated = 10 * time.Second // tracks further apart than this have clocks of their own

	maxPending      = 128 // frames of a kind that wait for a verdict
	maxPendingBytes = 8 << 20
	verdictTime     = time.Second
	smallVerdict    = 4 // frames that have to agree on a small step back

	maxShift  = 2 * time.Second // by which small steps back may move the clock on at once,
	shiftLeak = 10              // and a tenth of real time beyond that: timestamps in no order make no longer recording
)

// item is a frame on its way: at is its decoding time on the continuous clock.
type item struct {
	frame.Frame
	at     time.Duration
	jumped string // why this frame is not continuous with what came before; "" when it is
}

func (i item) offset() time.Duration { return i.PTS - i.DTS }

// continuity maps the encoder's clock to one without jumps. Both tracks share one offset, so that a jump that both make
// keeps them in step; a jump that only one makes is told from a hole by where the other one is.
//
// A frame that does not fit waits until others show what it is: a glitch of its own, a jump of its track, or a jump of
// all.
type continuity struct {
	offset time.Duration
	tracks [2]track
	pass   func(item) error
	glitch func() // a frame's time was put right
	lose   func() // a frame is not passed on
	steady func() bool

	shifted   time.Duration // by how much small steps back have moved the clock on, less what real time allows
	shiftedAt time.Time
}

type track struct {
	seen     bool
	last     time.Duration // continuous time of the last frame
	step     time.Duration // usual distance to the next
	fixed    bool          // step is known from the stream's parameters
	usual    time.Duration // the smaller one of the last two distances: a single hole does not count; 0: none yet
	before   time.Duration // the last of them
	own      time.Duration // added to offset for this track alone
	received time.Time

	pending []frame.Frame
	bytes   int
	why     fit           // what the first of them looked like
	other   time.Duration // where the other track was when the waiting began
}

func (t *track) due() time.Duration { return t.last + t.step }

// came notes that the newest frame is one that is due at a time on the continuous clock.
func (t *track) came(at time.Duration) {
	if d := at - t.last; t.seen && d > 0 {
		t.usual = d
		if t.before > 0 {
			t.usual = min(d, t.before)
		}
		t.before = d
		if !t.fixed {
			t.step = min(d, max(t.usual, 2*time.Second))
		}
	}
	t.seen, t.last = true, at
}

// slow reports whether a frame that is due d after the last one is one of few, as of a slide show, real time having
// passed between them: its clock has not jumped.
func (t *track) slow(d, passed time.Duration) bool { return d <= slowHole*t.usual && 2*passed >= d }

func (t *track) setStep(d time.Duration) { t.step, t.fixed = d, true }

// fit is what a frame's time looks like.
type fit int

const (
	fits fit = iota
	gap      // later than due, but by little: frames were lost, or its time is wrong
	smallStep
	jump
)

func (c *continuity) time(f frame.Frame) time.Duration {
	return f.DTS + c.offset + c.tracks[f.Kind].own
}

func (c *continuity) other(k frame.Kind) *track { return &c.tracks[1-k] }

func (c *continuity) judge(f frame.Frame) fit {
	t, u := &c.tracks[f.Kind], c.other(f.Kind)
	at := c.time(f)
	switch {
	case at < t.last-jumpBackward:
		return jump
	case at < t.last-c.backlash(f.Kind):
		return smallStep
	case at <= t.due()+believed:
		return fits
	case at <= t.due()+jumpForward, u.seen && at <= u.due()+jumpForward, t.slow(at-t.last, f.Received.Sub(t.received)):
		if f.Kind == frame.Video && !c.steady() {
			return fits
		}
		return gap
	case !u.seen && !c.steady() && at <= t.due()+slowFrame && 2*f.Received.Sub(t.received) >= at-t.last:
		return fits
	}
	return jump
}

// backlash is how far a track may go back without being stopped here: what comes later takes care of jitter.
func (c *continuity) backlash(k frame.Kind) time.Duration {
	if k == frame.Audio {
		return 2 * c.tracks[k].step
	}
	return 0
}

// write takes the next frame as the encoder stamped it.
func (c *continuity) write(f frame.Frame) error {
	t := &c.tracks[f.Kind]
	if !t.seen {
		return c.first(f)
	}
	verdict := c.judge(f)
	if len(t.pending) == 0 {
		if verdict == fits {
			if err := c.accept(f); err != nil {
				return err
			}
			return c.consider(1 - f.Kind)
		}
		t.why, t.other = verdict, c.other(f.Kind).last
		return c.delay(f)
	}
	if verdict == fits && (t.why != smallStep || len(t.pending) < 2) {
		// the old clock goes on: what waits was a glitch
		if err := c.flatten(f.Kind, c.time(f)); err != nil {
			return err
		}
		return c.accept(f)
	}
	last := t.pending[len(t.pending)-1]
	d := f.DTS - last.DTS
	if d >= -jumpBackward && (d <= t.step+jumpForward || t.slow(d, f.Received.Sub(last.Received))) {
		return c.delay(f)
	}
	// yet another jump: close the one before, unless it was of one frame only, which never sets the clock
	move := func() error { return c.shift(f.Kind, !c.other(f.Kind).seen) }
	if len(t.pending) == 1 {
		move = func() error { return c.flatten(f.Kind, t.due()+t.step) }
	}
	if err := move(); err != nil {
		return err
	}
	return c.write(f)
}

// first holds a track's first frame until the second: some encoders stamp the very first one with 0 or with anything,
// and what a whole publication is placed by must not be that.
func (c *continuity) first(f frame.Frame) error {
	t := &c.tracks[f.Kind]
	follows := func(head frame.Frame) bool {
		d := f.DTS - head.DTS
		return d >= -jumpBackward && (d <= 2*jumpForward || 2*f.Received.Sub(head.Received) >= d)
	}
	switch held := t.pending; {
	case len(held) == 2 && follows(held[1]): // the first one is odd
		return c.begin(retimed(held[0], held[1].DTS-max(f.DTS-held[1].DTS, time.Millisecond)), held[1], f)
	case len(held) == 2 && follows(held[0]): // the second one is
		return c.begin(held[0], retimed(held[1], held[0].DTS+max(0, f.DTS-held[0].DTS)/2), f)
	case len(held) == 1 && follows(held[0]):
		return c.begin(held[0], f)
	case len(held) == 2: // no two of three agree
		t.pending = append(t.pending[:0], held[1])
		c.lose()
	}
	t.pending = append(t.pending, f)
	return nil
}

func retimed(f frame.Frame, at time.Duration) frame.Frame {
	f.PTS += at - f.DTS
	f.DTS = at
	return f
}

// begin lets a track start with these frames.
func (c *continuity) begin(frames ...frame.Frame) error {
	t := &c.tracks[frames[0].Kind]
	if n := len(t.pending); n > 1 {
		c.glitch()
	}
	t.clear()
	c.join(frames[0])
	if err := c.accept(frames[0]); err != nil {
		return err
	}
	for _, f := range frames[1:] {
		follow := c.write
		if f.Kind == frame.Video && c.time(f) > t.last { // nothing else says how far apart they are
			follow = c.accept
		}
		if err := follow(f); err != nil {
			return err
		}
	}
	return nil
}

// join places the first frame of a track: by the shared clock, unless it can't be the same one.
func (c *continuity) join(f frame.Frame) {
	t, u := &c.tracks[f.Kind], c.other(f.Kind)
	if d := c.time(f) - u.last; u.seen && (d > unrelated || d < -unrelated) {
		t.own = u.last - (f.DTS + c.offset)
	}
}

func (c *continuity) accept(f frame.Frame) error {
	t := &c.tracks[f.Kind]
	i := item{Frame: f, at: c.time(f)}
	t.came(i.at)
	t.received = f.Received
	return c.pass(i)
}

func (c *continuity) delay(f frame.Frame) error {
	t := &c.tracks[f.Kind]
	t.pending = append(t.pending, f)
	t.bytes += len(f.Data)
	t.received = f.Received
	return c.consider(f.Kind)
}

// consider decides about what waits of kind k, if there is enough to decide on.
func (c *continuity) consider(k frame.Kind) error {
	t, u := &c.tracks[k], c.other(k)
	n := len(t.pending)
	if n == 0 || !t.seen {
		return nil
	}
	first, last := t.pending[0], t.pending[n-1]
	alone := !u.seen || last.Received.Sub(u.received) > verdictTime
	went := u.last - t.other
	switch {
	case t.why == gap && n >= 2:
		return c.release(k, "")
	case t.why == gap:
		return nil
	case n >= 2 && len(u.pending) >= 2:
		return c.shift(k, true)
	case t.why == smallStep && n >= smallVerdict:
		return c.shift(k, k == frame.Video)
	case t.why == smallStep:
		return nil
	case alone && n >= 2:
		return c.shift(k, true)
	case went >= verdictTime, last.DTS-first.DTS >= verdictTime, n >= maxPending, t.bytes >= maxPendingBytes:
		return c.shift(k, went < verdictTime/4)
	}
	return nil
}

// shift moves the clock so that what waits of kind k continues where the written ends: for all tracks, or for this one
// alone.
func (c *continuity) shift(k frame.Kind, all bool) error {
	t, u := &c.tracks[k], c.other(k)
	if t.why == gap || t.why == smallStep && !all {
		return c.release(k, "") // sound a little back alone: frames are dropped until it fits
	}
	if len(u.pending) > 0 && all {
		k = frame.Video // both wait: the picture says where it goes on
		t, u = &c.tracks[frame.Video], &c.tracks[frame.Audio]
	}
	from := c.time(t.pending[0])
	to := t.due()
	if !all {
		to = max(to, t.other)
	} else if v := &c.tracks[frame.Video]; v.seen {
		to = max(to, v.due())
	}
	reason := ""
	if d := from - t.due(); t.why == jump || len(u.pending) > 0 && u.why == jump {
		reason = fmt.Sprintf("%s clock jumped by %v", t.pending[0].Kind, d.Round(time.Millisecond))
		if all {
			reason = fmt.Sprintf("clock jumped by %v", d.Round(time.Millisecond))
		}
	} else {
		c.glitch()
	}
	if reason == "" && !c.affords(to-from, t.received) {
		return c.release(k, "")
	}
	if !all {
		t.own += to - from
		return c.release(k, reason)
	}
	lead := u.due() - t.due()
	c.offset += to - from + t.own
	t.own, u.own = 0, 0
	if err := c.release(k, reason); err != nil || len(u.pending) == 0 {
		return err
	}
	if d := c.time(u.pending[0]) - to - lead; d > jumpForward || d < -jumpForward {
		// it jumped elsewhere: the order of arrival is all there is to go by
		u.own = max(to, u.due()) - c.time(u.pending[0])
	}
	return c.release(1-k, "")
}

// affords reports whether the clock may be moved on by d because of a small step back, at the time of a frame's
// arrival.
func (c *continuity) affords(d time.Duration, now time.Time) bool {
	if !c.shiftedAt.IsZero() {
		c.shifted = max(0, c.shifted-now.Sub(c.shiftedAt)/shiftLeak)
	}
	c.shiftedAt = now
	if c.shifted+d > maxShift {
		return false
	}
	c.shifted += max(0, d)
	return true
}

// slip moves the clock of all tracks by d, which the picture was found to be off by for good.
func (c *continuity) slip(d time.Duration) {
	if !c.affords(d, c.tracks[frame.Video].received) {
		return
	}
	c.offset += d
	c.tracks[frame.Video].last += d
}

// move moves the clock of one track by d.
func (c *continuity) move(k frame.Kind, d time.Duration) {
	c.tracks[k].own += d
	c.tracks[k].last += d
}

// release passes on what waited.
func (c *continuity) release(k frame.Kind, reason string) error {
	t := &c.tracks[k]
	for n, f := range t.pending {
		i := item{Frame: f, at: c.time(f)}
		if n == 0 {
			i.jumped = reason
		}
		t.came(i.at)
		if err := c.pass(i); err != nil {
			return err
		}
	}
	t.clear()
	return nil
}

// flatten passes on what waited, spread evenly up to the frame that showed it to be a glitch.
func (c *continuity) flatten(k frame.Kind, until time.Duration) error {
	t := &c.tracks[k]
	start, n := t.last, time.Duration(len(t.pending)+1)
	for i, f := range t.pending {
		c.glitch()
		t.last = start + max(0, until-start)*time.Duration(i+1)/n
		if err := c.pass(item{Frame: f, at: t.last}); err != nil {
			return err
		}
	}
	t.clear()
	return nil
}

func (t *track) clear() {
	clear(t.pending) // the frames' bytes are not to be kept
	t.pending, t.bytes, t.why = t.pending[:0], 0, fits
}

// finish passes on whatever still waits.
func (c *continuity) finish() error {
	for k := range c.tracks {
		var err error
		switch t := &c.tracks[k]; {
		case len(t.pending) == 0:
		case !t.seen:
			err = c.begin(t.pending[0])
		default:
			err = c.shift(frame.Kind(k), true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
