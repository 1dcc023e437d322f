package slate

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"millrace/internal/media/frame"
)

// Writer is the writer of one broadcast; see the package comment. Its methods may be called from any goroutine.
type Writer struct {
	opt Options

	mu      sync.Mutex
	on      bool // slate is wanted
	stopped bool // nothing is written any more
	still   *Still
	known   [2]known     // what the recording has of each kind
	group   group        // the pictures from the last key frame on
	pub     *Publication // the encoder that is connected; nil while none is
	content *content     // the open stretch, of either sort; at most one is not nil
	slate   *show
	began   bool // something was recorded
	// The next picture of an encoder brings its parameter sets along: nobody knows what was shown before.
	sets  bool
	later later
	pace
}

// pace is where the recording stands in time.
type pace struct {
	came    time.Time // when media came last
	reached time.Time // the wall clock that the recording has got to
	excused bool      // a Tick that came late has waited for what may have come meanwhile
}

// known is what the recording has of a kind.
type known struct {
	config frame.Config
	has    bool
	fps    float64       // video; 0: unknown
	fixed  bool          // video: its frames stand on a grid of 1/fps
	rated  bool          // video: the two are said
	key    []byte        // video: the last key frame
	lag    time.Duration // video: by how much it is presented later than it is decoded
}

// New returns a Writer of an empty recording, without slate.
func New(o Options) *Writer { return &Writer{opt: o, group: group{seed: maphash.MakeSeed()}} }

// Resume says what an earlier process has recorded: nothing has come since.
func (f *Writer) Resume(since time.Time, have ...frame.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began, f.sets, f.came, f.reached = true, true, since, since
	for _, c := range have {
		f.known[c.Kind] = known{config: c, has: true, fps: c.FrameRate, fixed: true, rated: true}
	}
}

// Allow reports whether slate is wanted from now on.
func (f *Writer) Allow(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.when(func() {
		if f.on && !on && f.pub == nil || f.slate != nil && !on {
			f.end()
		}
		f.on = on
	})
}

// Stop ends what is open; nothing is written from now on. While nothing may be written it is left as it is.
func (f *Writer) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held() {
		f.abandon()
		return
	}
	f.end()
	f.stopped, f.pub = true, nil
}

// Abandon is Stop for a recording whose open output panicked: it is left as it is.
func (f *Writer) Abandon() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abandon()
}

func (f *Writer) abandon() {
	f.forget()
	f.stopped, f.pub, f.content, f.slate = true, nil, nil, nil
}

// Wants tells which still is needed and not there; false when none is, or while the rate of the pictures is not known
// yet.
func (f *Writer) Wants() (Shape, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := &f.known[frame.Video]
	if !f.on || f.stopped || !v.has || !v.rated || v.config.Width <= 0 || v.config.Height <= 0 {
		return Shape{}, false
	}
	s := v.shape()
	return s, f.still == nil || f.still.shape() != s
}

// Use gives the still that was wanted. A slate that is shown already begins again with it.
func (f *Writer) Use(s *Still) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v := &f.known[frame.Video]; v.has && s.shape() != v.shape() {
		return // another shape is wanted by now
	}
	f.when(func() {
		f.still = s
		if f.slate != nil {
			f.end()
		}
	})
}

func (k *known) shape() Shape {
	return Shape{k.config.Codec, k.config.Width, k.config.Height, k.rate()}
}

// rate is the slate's frame rate.
func (k *known) rate() float64 {
	if k.fps <= 0 || !k.fixed || k.fps > maxRate {
		return defaultRate
	}
	return k.fps
}

// Tick writes the slate that is due and tells how long nothing happens by itself.
func (f *Writer) Tick() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.opt.Now()
	const asleep = time.Hour // nothing is written any more
	switch {
	case f.stopped:
		return asleep
	case f.held():
		return patience
	case !f.on:
		if at := f.suspect(); !at.IsZero() {
			return min(max(at.Sub(now), time.Millisecond), patience)
		}
		return patience
	case !f.began:
		return patience
	case f.pub.waited(now):
		return f.pub.back.Add(looked).Sub(now)
	case f.slate == nil:
		wait := f.due().Sub(now)
		if wait <= 0 && f.group.waiting(now) {
			wait = f.group.asked.Add(heldIn).Sub(now)
		}
		if wait > 0 {
			if at := f.suspect(); !at.IsZero() {
				wait = min(wait, max(at.Sub(now), time.Millisecond))
			}
			f.excused = false
			return wait
		}
		if wait < -lateness && !f.excused { // the process was held up: what its sockets have is taken first
			f.excused = true
			return lateness
		}
		if !f.showable() {
			return patience
		}
		if err := f.begin(); err != nil {
			return f.broke(err)
		}
	}
	if err := f.slate.advance(now.Sub(f.slate.started)); err != nil {
		return f.broke(err)
	}
	f.reached = f.slate.started.Add(f.slate.length())
	return f.slate.pace
}

// due is when the slate is to begin unless something comes. What an open connection still delivers goes on where media
// stopped, without a picture lost, for as long as players can wait for it.
func (f *Writer) due() time.Time {
	c := f.content
	if c == nil {
		return f.start().Add(patience)
	}
	wait := patience
	if c.end[frame.Audio] == 0 { // a picture every second is no gap
		wait = max(wait, 3*c.step)
	}
	due := f.start().Add(wait)
	if c.pub == f.pub {
		due = latest(due, f.came.Add(f.opt.Lasts()))
	}
	return due
}

// start is where slate goes on in real time: when media came last, or later when there is media for longer than that.
func (f *Writer) start() time.Time { return latest(f.came, f.reached) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// showable reports whether there is something to show: a picture, or for a recording without pictures, silence.
func (f *Writer) showable() bool {
	v, a := &f.known[frame.Video], &f.known[frame.Audio]
	if v.has {
		return f.still != nil && f.still.shape() == v.shape() || len(v.key) > 0
	}
	_, ok := SilenceOf(a.config)
	return a.has && ok
}

// begin opens a stretch of slate where the recording ends, once the last picture has stood for a while.
func (f *Writer) begin() error {
	start := f.start()
	if f.content != nil {
		stood, err := f.content.stand(patience, start)
		if err != nil {
			return err
		}
		start = start.Add(stood)
	}
	f.end()
	f.slate = newShow(f, start)
	return f.slate.open()
}

// end closes the open stretch. What was missing of the sound is filled up first.
func (f *Writer) end() {
	var out Output
	switch {
	case f.slate != nil:
		f.slate.conclude()
		out = f.slate.out
	case f.content != nil:
		f.content.conclude()
		out = f.content.out
	}
	f.slate, f.content = nil, nil
	if out != nil {
		if err := out.Close(nil); err != nil {
			f.opt.Broken(err)
		}
	}
}

// broke gives the slate up.
func (f *Writer) broke(err error) time.Duration {
	f.on = false
	f.end()
	f.opt.Broken(err)
	return time.Hour
}

// frames is how many whole frames of a rate fit into a part, at least one.
func frames(fps float64, part time.Duration) int {
	const rounding, slack = 1e-3, 2 * time.Millisecond
	return max(int(math.Floor((part-slack).Seconds()*fps+rounding)), 1)
}

// at is when frame n begins at a rate.
func at(n int64, fps float64) time.Duration {
	return time.Duration(math.Round(float64(n) * float64(time.Second) / fps))
}
