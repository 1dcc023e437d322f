package slate

import (
	"fmt"
	"time"

	"millrace/internal/media/frame"
)

// content is a stretch of an encoder's media. Times are the stretch's own.
type content struct {
	f       *Writer
	pub     *Publication
	out     Output
	shift   time.Duration // from the session's clock
	started time.Time     // of the first frame, wall clock
	first   time.Duration // its PTS
	begun   bool

	step    time.Duration // of the pictures
	fps     float64
	lag     time.Duration    // from decoding to presentation, of the last key frame
	end     [2]time.Duration // where what is written of a kind ends; 0: nothing is
	newest  [2]time.Duration // latest presentation of a kind
	other   [2]time.Duration // the same of the other kind when this one came last
	missing [2]bool          // what is written of the kind is ours
	late    [2]time.Duration // how far behind the other kind this one was when it came last, if that was much
	sound   frame.Config     // what the output was told of the sound: what is filled in has to be the same
	held    *Still           // the last picture, which stands; nil: it does not
	sets    bool             // the next key frame brings its parameter sets along
}

// begin tells the output what is known, of this encoder or, after a slate, of those before.
func (c *content) begin(resumed bool, first *frame.Frame) error {
	c.sets = resumed || c.f.sets
	start := first.PTS + c.shift
	c.other = [2]time.Duration{start, start}
	c.newest = c.other
	for k, given := range c.pub.configs {
		if given == nil && c.fills(frame.Kind(k)) {
			given = &c.f.known[k].config
			if frame.Kind(k) == frame.Video {
				c.fps = c.f.known[k].fps
			}
		}
		if given == nil {
			continue
		}
		if err := c.configure(*given); err != nil {
			return err
		}
	}
	if c.pub.configs[frame.Video] != nil || c.fps > 0 {
		return c.out.Rate(c.fps, c.f.known[frame.Video].fixed)
	}
	return nil
}

// configure tells the output the parameters of a kind.
func (c *content) configure(config frame.Config) error {
	if config.Kind == frame.Audio {
		c.sound = config
	}
	return c.out.Configure(config)
}

// fills reports whether a kind that is missing can be filled in.
func (c *content) fills(k frame.Kind) bool {
	known := &c.f.known[k]
	if !known.has {
		return false
	}
	if k == frame.Video {
		return len(known.key) > 0
	}
	_, ok := SilenceOf(known.config)
	return ok
}

// write writes an encoder's frame, after what was missing before it.
func (c *content) write(f frame.Frame) error {
	f.DTS += c.shift
	f.PTS += c.shift
	k, o := f.Kind, 1-f.Kind
	if f.DTS < 0 && c.shift != 0 {
		return nil // from before the key frame that the stretch begins with
	}
	if !c.begun {
		c.begun, c.first = true, f.PTS
	}
	if c.shift != 0 && f.PTS+f.Duration/2 < c.first {
		return nil // the slate was still shown
	}
	c.came(&f)
	if c.newest[k]-c.other[o] > c.alone(o) && c.fills(o) && (o == frame.Audio || !c.f.group.waiting(c.f.came)) {
		if err := c.fill(o, f.PTS-c.late[o]); err != nil { // the place of what is on its way is left free
			return err
		}
	}
	if c.missing[k] {
		if f.DTS < c.end[k] || !f.Key {
			if k == frame.Video {
				c.f.group.keep(f.Data)
			}
			return nil // its place is taken, or it needs pictures that were never written
		}
		if err := c.back(&f); err != nil {
			return err
		}
	}
	if k == frame.Video && c.sets && f.Key {
		c.sets, c.f.sets, f.Data = false, false, withSets(c.pub.configs[frame.Video], f.Data)
	}
	return c.put(f)
}

// alone is by how much the other kind may go on without this one before that is filled in.
func (c *content) alone(k frame.Kind) time.Duration {
	if v := &c.f.known[frame.Video]; k == frame.Video && v.rated && !v.fixed {
		return alone + uneven
	}
	return alone
}

// back ends the filling in of a kind, where f goes on.
func (c *content) back(f *frame.Frame) error {
	c.missing[f.Kind] = false
	if f.Kind == frame.Audio {
		return nil
	}
	if rest := f.DTS - c.end[frame.Video]; rest > 0 {
		if err := c.repeat(rest); err != nil {
			return err
		}
	}
	if c.held != nil {
		return c.release()
	}
	c.out.Cut(false)
	return nil
}

func (c *content) came(f *frame.Frame) {
	c.newest[f.Kind] = max(c.newest[f.Kind], f.PTS)
	c.other[f.Kind] = c.newest[1-f.Kind]
	if c.late[f.Kind] = min(c.other[f.Kind]-f.PTS, mostLate); c.late[f.Kind] < little {
		c.late[f.Kind] = 0
	}
	if f.Kind == frame.Video {
		// at a variable rate it lasts longer than it says
		c.step = max(f.Duration, min(f.DTS-c.f.group.at, time.Second))
		c.f.group.add(f, c.f.came)
		if f.Key {
			c.lag = f.PTS - f.DTS
			c.f.known[frame.Video].lag = c.lag
		}
	}
}

// put writes a frame; silence is put where sound was lost.
func (c *content) put(f frame.Frame) error {
	if f.Kind == frame.Audio && c.end[frame.Audio] > 0 && f.DTS > c.end[frame.Audio] {
		if err := c.hush(f.DTS, true); err != nil {
			return err
		}
	}
	c.end[f.Kind] = max(c.end[f.Kind], f.DTS+f.Duration)
	c.f.began = true
	if at := c.started.Add(f.PTS + f.Duration - c.first); at.Before(c.f.came.Add(maxLead)) {
		c.f.reached = latest(c.f.reached, at)
	}
	return c.out.Write(f)
}

// fill writes what is missing of a kind up to a time of presentation.
func (c *content) fill(k frame.Kind, until time.Duration) error {
	if c.end[k] == 0 {
		c.end[k] = max(c.other[k], 0) // where the stretch began
	}
	if until <= c.end[k] {
		return nil
	}
	if k == frame.Audio {
		c.missing[k] = true
		return c.hush(until, false)
	}
	if err := c.freezeLast(); err != nil {
		return err
	}
	if !c.missing[k] {
		c.missing[k] = true
		c.out.Cut(false)
	}
	return c.freeze(until)
}

// hush writes whole frames of silence up to a time; last: and what fills the rest best.
func (c *content) hush(until time.Duration, last bool) error {
	s, ok := SilenceOf(c.sound)
	if !ok {
		return nil
	}
	from := c.end[frame.Audio]
	for n := int64(0); from+s.at(n+1) <= until+time.Microsecond; n++ {
		if err := c.silent(s.Packet, from+s.at(n), s.at(n+1)-s.at(n)); err != nil {
			return err
		}
	}
	if packet, long := s.fill(until - c.end[frame.Audio]); last && packet != nil {
		return c.silent(packet, c.end[frame.Audio], long)
	}
	return nil
}

func (c *content) silent(packet []byte, at, long time.Duration) error {
	f := frame.Frame{
		Kind: frame.Audio, DTS: at, PTS: at, Duration: long, Key: true, Data: packet,
		Received: c.started.Add(at - c.first),
	}
	c.end[frame.Audio] = at + long
	if err := c.out.Write(f); err != nil {
		return fmt.Errorf("write silence: %w", err)
	}
	return nil
}

// freeze writes the last picture, each time for as long as a part may last, up to a time.
func (c *content) freeze(until time.Duration) error {
	v := &c.f.known[frame.Video]
	long := at(int64(frames(v.rate(), c.f.opt.Limit())), v.rate())
	for c.end[frame.Video]+long <= until {
		if err := c.repeat(long); err != nil {
			return err
		}
	}
	return nil
}

// repeat writes the last picture once, or where it is not known the last key frame.
func (c *content) repeat(long time.Duration) error {
	f := frame.Frame{
		Kind: frame.Video, DTS: c.end[frame.Video], PTS: c.end[frame.Video] + c.lag, Duration: long, Key: true,
		Data: c.f.known[frame.Video].key,
	}
	if c.held != nil {
		f.Data = c.held.Samples[0]
	}
	f.Received = c.started.Add(f.PTS - c.first)
	c.end[frame.Video] += long
	if err := c.out.Write(f); err != nil {
		return fmt.Errorf("hold picture: %w", err)
	}
	return nil
}

// stand lets the last picture stand at the stretch's end, where the time is started; it says for how long. That is
// slate, unless sound goes on behind the picture.
func (c *content) stand(long time.Duration, started time.Time) (time.Duration, error) {
	v := &c.f.known[frame.Video]
	if c.end[frame.Video] == 0 || len(v.key) == 0 {
		return 0, nil
	}
	if err := c.freezeLast(); err != nil {
		return 0, err
	}
	slate := c.end[frame.Audio] <= c.end[frame.Video]+c.lag+trailing
	c.out.Cut(slate)
	if slate {
		c.f.opt.Stands(started)
	}
	from, rate := c.end[frame.Video], v.rate()
	part := int64(frames(rate, c.f.opt.Limit()))
	for left := int64(frames(rate, long+time.Second/100)); left > 0; left -= part {
		if err := c.repeat(at(min(left, part), rate)); err != nil {
			return 0, err
		}
	}
	return c.end[frame.Video] - from, nil
}

// conclude fills the sound up to where the picture ends, so that what follows finds both at one place.
func (c *content) conclude() {
	if end := c.end[frame.Audio]; end > 0 && c.end[frame.Video]+c.lag > end {
		_ = c.hush(c.end[frame.Video]+c.lag, true) // closing says what is wrong with the output
	}
}

// withSets puts parameter sets in front of a key frame. Players read them in the init segment; ffmpeg's HLS reader
// keeps the init segment that it has found first.
func withSets(c *frame.Config, data []byte) []byte {
	if c == nil {
		return data
	}
	var out []byte
	for _, set := range [][]byte{c.VPS, c.SPS, c.PPS} {
		if len(set) > 0 && (c.Codec == frame.H264 || c.Codec == frame.HEVC) {
			n := len(set)
			out = append(out, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
			out = append(out, set...)
		}
	}
	return append(out, data...)
}
