package slate

import (
	"bytes"
	"time"

	"millrace/internal/media/frame"
)

// Publication is what one encoder's session writes to. Until its first frame, and when it has been silent, there may be
// slate; media takes over again with a key frame.
type Publication struct {
	f       *Writer
	started time.Time // when its first frame came; zero: not said
	back    time.Time // when its first key frame came that is not written yet; zero: none has
	configs [2]*frame.Config
	fps     float64
	fixed   bool

	seen   [2]time.Duration // on the session's clock: where the newest frame of each kind ends
	last   time.Duration    // the same when media stopped
	burst  *burst           // media has come again, and nothing of it is written yet
	sounds []frame.Frame    // of it, the newest
	failed error            // of what was written later than it came
}

// burst is media that comes again after a pause.
type burst struct {
	at    time.Duration // session's clock of its first frame
	since time.Time
	pause time.Time // when the last frame before it came
}

// Attach begins a publication; what its predecessor still writes is dropped.
func (w *Writer) Attach() *Publication {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &Publication{f: w}
	w.when(func() {
		w.detach()
		w.pub = p
	})
	return p
}

// detach lets go of the current publication. Where there may be slate its stretch stays open: the last picture stands
// for a while.
func (w *Writer) detach() {
	w.pub = nil
	if w.content != nil && !w.on {
		w.end()
	}
	w.opt.Sooner()
}

// stretch is the publication's own, if it is the one that is open.
func (p *Publication) stretch() *content {
	if c := p.f.content; c != nil && c.pub == p {
		return c
	}
	return nil
}

// Began says when the publication's first frame came, before it is written.
func (p *Publication) Began(started time.Time) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.f.when(func() { p.started = started })
}

// Back says that the publication's first key frame came, which is written once its session knows more of what follows.
// Until then the slate stands where it is: what has come already is shown behind it.
func (p *Publication) Back(at time.Time) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.f.when(func() {
		if p.back.IsZero() && p.seen == [2]time.Duration{} {
			p.back = at
		}
	})
}

// waited reports whether what has come is about to be written.
func (p *Publication) waited(now time.Time) bool {
	return p != nil && !p.back.IsZero() && p.seen == [2]time.Duration{} && now.Sub(p.back) < looked
}

// Configure implements Output.
func (p *Publication) Configure(c frame.Config) error {
	return p.told(func() error { return p.configure(c) }, len(c.SPS)+len(c.PPS)+len(c.VPS)+len(c.ASC)+len(c.Header))
}

// told does what the session has told in so many bytes, now or once something may be written.
func (p *Publication) told(do func() error, bytes int) error {
	f := p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !f.held():
		return do()
	case !f.room(bytes):
		return ErrHeld
	}
	f.later.jobs = append(f.later.jobs, func() {
		if err := do(); err != nil && p.failed == nil {
			p.failed = err
		}
	})
	return nil
}

func (p *Publication) configure(c frame.Config) error {
	f := p.f
	if f.pub != p || c.Kind > frame.Audio {
		return nil
	}
	p.configs[c.Kind] = &c
	k := &f.known[c.Kind]
	other := !same(k.config, c)
	if other {
		k.key, k.rated = nil, false
	}
	k.config, k.has = c, true
	switch open := p.stretch(); {
	case open == nil:
		return nil
	case !other && c.Kind == frame.Video && open.held != nil: // told when the picture goes on
		return nil
	case other && (open.missing[c.Kind] || c.Kind == frame.Video && open.held != nil):
		// what was filled in had the parameters of an encoder before this one
		f.end()
		return nil
	default:
		return open.configure(c)
	}
}

func same(a, b frame.Config) bool {
	return a.Codec == b.Codec && bytes.Equal(a.SPS, b.SPS) && bytes.Equal(a.PPS, b.PPS) && bytes.Equal(a.VPS, b.VPS) &&
		bytes.Equal(a.ASC, b.ASC) && bytes.Equal(a.Header, b.Header) && a.SampleRate == b.SampleRate &&
		a.Channels == b.Channels
}

// Rate implements Output.
func (p *Publication) Rate(fps float64, constant bool) error {
	return p.told(func() error { return p.rate(fps, constant) }, 0)
}

func (p *Publication) rate(fps float64, constant bool) error {
	f := p.f
	if f.pub != p {
		return nil
	}
	p.fps, p.fixed = fps, constant
	v := &f.known[frame.Video]
	v.fps, v.fixed, v.rated = fps, constant, true
	if c := p.stretch(); c != nil {
		return c.out.Rate(fps, constant)
	}
	return nil
}

// Discontinuity implements Output.
func (p *Publication) Discontinuity(reason string) error {
	return p.told(func() error {
		if c := p.stretch(); c != nil && p.f.pub == p {
			c.conclude()
			return c.out.Discontinuity(reason)
		}
		return nil
	}, 0)
}

// Write implements Output.
func (p *Publication) Write(fr frame.Frame) error {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	switch {
	case p.f.stopped:
		return nil
	case p.f.held():
		return p.keep(fr)
	case p.failed != nil:
		return p.failed
	}
	return p.write(fr, p.f.opt.Now())
}

// write writes a frame that came at a time.
func (p *Publication) write(fr frame.Frame, came time.Time) error {
	f := p.f
	if f.pub != p || f.stopped {
		return nil
	}
	pause := f.came
	f.came = came
	defer func() { p.seen[fr.Kind] = max(p.seen[fr.Kind], fr.DTS+fr.Duration) }()
	if fr.Kind == frame.Video && fr.Key {
		f.known[frame.Video].key = fr.Data
	}
	c := p.stretch()
	if c == nil {
		if p.burst == nil {
			p.burst = &burst{at: fr.DTS, since: f.came, pause: pause}
			p.last = max(p.seen[frame.Video], p.seen[frame.Audio])
		}
		if (f.slate != nil || p.last > 0) && !p.takesOver(&fr) {
			return nil
		}
		return p.open(fr)
	}
	return c.write(fr)
}

// takesOver reports whether media goes on in place of the slate with fr; what is not written with it is kept, or too
// old.
func (p *Publication) takesOver(fr *frame.Frame) bool {
	if fr.Kind == frame.Audio {
		if len(p.sounds) >= kept {
			p.sounds = append(p.sounds[:0], p.sounds[1:]...)
		}
		p.sounds = append(p.sounds, *fr)
		late := p.f.came.Sub(p.burst.since) >= soundFirst
		return (p.configs[frame.Video] == nil || late && p.seen[frame.Video] <= p.burst.at) && !p.stale(fr)
	}
	return fr.Key && (!p.stale(fr) || p.behind(fr) < bearable)
}

// behind is how much later fr came than it was due by the session's clock.
func (p *Publication) behind(fr *frame.Frame) time.Duration {
	return p.last + p.f.came.Sub(p.burst.pause) - fr.DTS
}

// stale reports whether fr belongs to the time that the slate has stood in for, and more of it is coming at once: a
// connection that was stuck delivers what has piled up. A clock that stood still while nothing came looks the same at
// first; it goes on at the pace of real time.
func (p *Publication) stale(fr *frame.Frame) bool {
	const tolerance = 250 * time.Millisecond
	if p.last == 0 { // a new connection has no old clock
		return false
	}
	ran := fr.DTS - p.burst.at
	return p.behind(fr) > tolerance && ran > 2*p.f.came.Sub(p.burst.since)+tolerance
}

// open begins a stretch of media with fr.
func (p *Publication) open(fr frame.Frame) error {
	f := p.f
	resumed := f.slate != nil || p.last > 0
	started := fr.Received
	if !resumed && !p.started.IsZero() {
		started = p.started
	}
	if f.slate != nil {
		if err := f.slate.advance(started.Sub(f.slate.started)); err != nil {
			return err
		}
		f.reached = f.slate.started.Add(f.slate.length())
	}
	f.end()
	if resumed { // what the session has held back came while the slate was still shown: dates only grow
		started = latest(started, f.reached)
		fr.Received = started
	}
	c := &content{f: f, pub: p, fps: p.fps, started: started}
	if resumed {
		c.shift = -fr.DTS
	}
	f.content = c
	c.out = f.opt.Open(false, started)
	if err := c.begin(resumed, &fr); err != nil {
		return err
	}
	sounds := p.sounds
	p.burst, p.sounds = nil, nil
	if fr.Kind == frame.Video || !resumed {
		if err := c.write(fr); err != nil {
			return err
		}
	}
	for _, s := range sounds {
		if s.PTS+s.Duration/2 >= fr.PTS {
			if err := c.write(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close implements Output: the encoder is gone.
func (p *Publication) Close(error) error {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.f.when(func() {
		if p.f.pub == p {
			p.f.detach()
		}
	})
	return nil
}
