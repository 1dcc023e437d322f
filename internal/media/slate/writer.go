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
func (w *Writer) Resume(since time.Time, have ...frame.Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began, w.sets, w.came, w.reached = true, true, since, since
	for _, c := range have {
		w.known[c.Kind] = known{config: c, has: true, fps: c.FrameRate, fixed: true, rated: true}
	}
}

// Allow reports whether slate is wanted from now on.
func (w *Writer) Allow(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.when(func() {
		if w.on && !on && w.pub == nil || w.slate != nil && !on {
			w.end()
		}
		w.on = on
	})
}

// Stop ends what is open; nothing is written from now on. While nothing may be written it is left as it is.
func (w *Writer) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held() {
		w.abandon()
		return
	}
	w.end()
	w.stopped, w.pub = true, nil
}

// Abandon is Stop for a recording whose open output panicked: it is left as it is.
func (w *Writer) Abandon() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abandon()
}

func (w *Writer) abandon() {
	w.forget()
	w.stopped, w.pub, w.content, w.slate = true, nil, nil, nil
}

// Wants tells which still is needed and not there; false when none is, or while the rate of the pictures is not known
// yet.
func (w *Writer) Wants() (Shape, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := &w.known[frame.Video]
	if !w.on || w.stopped || !v.has || !v.rated || v.config.Width <= 0 || v.config.Height <= 0 {
		return Shape{}, false
	}
	s := v.shape()
	return s, w.still == nil || w.still.shape() != s
}

// Use gives the still that was wanted. A slate that is shown already begins again with it.
func (w *Writer) Use(s *Still) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := &w.known[frame.Video]; v.has && s.shape() != v.shape() {
		return // another shape is wanted by now
	}
	w.when(func() {
		w.still = s
		if w.slate != nil {
			w.end()
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
func (w *Writer) Tick() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.opt.Now()
	const asleep = time.Hour // nothing is written any more
	switch {
	case w.stopped:
		return asleep
	case w.held():
		return patience
	case !w.on:
		if at := w.suspect(); !at.IsZero() {
			return min(max(at.Sub(now), time.Millisecond), patience)
		}
		return patience
	case !w.began:
		return patience
	case w.pub.waited(now):
		return w.pub.back.Add(looked).Sub(now)
	case w.slate == nil:
		wait := w.due().Sub(now)
		if wait <= 0 && w.group.waiting(now) {
			wait = w.group.asked.Add(heldIn).Sub(now)
		}
		if wait > 0 {
			if at := w.suspect(); !at.IsZero() {
				wait = min(wait, max(at.Sub(now), time.Millisecond))
			}
			w.excused = false
			return wait
		}
		if wait < -lateness && !w.excused { // the process was held up: what its sockets have is taken first
			w.excused = true
			return lateness
		}
		if !w.showable() {
			return patience
		}
		if err := w.begin(); err != nil {
			return w.broke(err)
		}
	}
	if err := w.slate.advance(now.Sub(w.slate.started)); err != nil {
		return w.broke(err)
	}
	w.reached = w.slate.started.Add(w.slate.length())
	return w.slate.pace
}

// due is when the slate is to begin unless something comes. What an open connection still delivers goes on where media
// stopped, without a picture lost, for as long as players can wait for it.
func (w *Writer) due() time.Time {
	c := w.content
	if c == nil {
		return w.start().Add(patience)
	}
	wait := patience
	if c.end[frame.Audio] == 0 { // a picture every second is no gap
		wait = max(wait, 3*c.step)
	}
	due := w.start().Add(wait)
	if c.pub == w.pub {
		due = latest(due, w.came.Add(w.opt.Lasts()))
	}
	return due
}

// start is where slate goes on in real time: when media came last, or later when there is media for longer than that.
func (w *Writer) start() time.Time { return latest(w.came, w.reached) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// showable reports whether there is something to show: a picture, or for a recording without pictures, silence.
func (w *Writer) showable() bool {
	v, a := &w.known[frame.Video], &w.known[frame.Audio]
	if v.has {
		return w.still != nil && w.still.shape() == v.shape() || len(v.key) > 0
	}
	_, ok := SilenceOf(a.config)
	return a.has && ok
}

// begin opens a stretch of slate where the recording ends, once the last picture has stood for a while.
func (w *Writer) begin() error {
	start := w.start()
	if w.content != nil {
		stood, err := w.content.stand(patience, start)
		if err != nil {
			return err
		}
		start = start.Add(stood)
	}
	w.end()
	w.slate = newShow(w, start)
	return w.slate.open()
}

// end closes the open stretch. What was missing of the sound is filled up first.
func (w *Writer) end() {
	var out Output
	switch {
	case w.slate != nil:
		w.slate.conclude()
		out = w.slate.out
	case w.content != nil:
		w.content.conclude()
		out = w.content.out
	}
	w.slate, w.content = nil, nil
	if out != nil {
		if err := out.Close(nil); err != nil {
			w.opt.Broken(err)
		}
	}
}

// broke gives the slate up.
func (w *Writer) broke(err error) time.Duration {
	w.on = false
	w.end()
	w.opt.Broken(err)
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
