// Package liveladder encodes the rungs of a broadcast while it is live: one encoder, fed picture by picture from the
// live edge, decodes once for all rungs that somebody watches. Segments and parts have the source's numbers, boundaries
// and times. It starts when a rung is requested, at the beginning of the open segment, and ends when nobody has asked
// for a while. Another encoder takes over at a segment boundary when other rungs are wanted or the source's parameters
// change, and continues where the old one stood if it dies. What is not made here, or too late, is made later by
// whoever makes the rungs of recordings.
//
// It must never know HTTP, resources, where objects are kept, or who watches. Goroutines: Run, called by the owner, and
// those that it starts: one that stores, and for each encoder one with its pipes. Nothing here ever delays the edge,
// which is only read.
package liveladder

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/encode"
	"millrace/internal/media/rendition/ladder"
	"millrace/internal/media/window"
)

// Edge is the live edge that is followed; window.Edge fits, its methods say the contract.
type Edge interface {
	Follow(rendition string, msn int64) (*window.Follower, error)
	Newest(rendition string) int64
	Ended() bool
}

// Output is what renditions are published into; window.Derived fits, its methods say the contract.
type Output interface {
	Attach(id string, msn int64)
	Detach(id string)
	Skip(id string, msn int64)
	AppendPart(id string, msn int64, number int, buf []byte, ticks int64, independent bool) bool
	Seal(id string, msn int64) bool
	Stored(id string, msn int64, same bool)
	Lost(id string, msn int64)
	Held() (bytes int)
	Begun() (all []window.Begun, more bool)
	Dependent(id string, msn int64, number int) bool
}

// Encoder encodes a picture in several sizes while it streams; encode.Engine fits.
type Encoder interface {
	Ladder(ctx context.Context, job encode.LadderArgs, input func(context.Context, io.Writer) error,
		outputs []func(context.Context, io.Reader) error) error
}

// Store keeps what was made.
type Store interface {
	// Keep stores what nothing is in the place of yet; false: something is.
	Keep(ctx context.Context, key string, data []byte) (bool, error)
}

// Rung is one rendition that is made here.
type Rung struct {
	ladder.Rung
	ID string // at the edge
	// Key is where a segment is stored, and HeadKey is where its first parts are that have to be gone on with.
	Key, HeadKey func(msn int64) string
}

// Options are what a Ladder needs.
type Options struct {
	Edge      Edge
	Output    Output
	Source    string // the edge's rendition that rungs are made of
	Timescale uint32 // its ticks per second
	// Init reads one of the source's init segments.
	Init    func(ctx context.Context, n int) ([]byte, error)
	Encoder Encoder
	Store   Store
	// Parameters is told a rung's AVCDecoderConfigurationRecord by each encoder that begins, with its first picture;
	// nil: nobody wants it.
	Parameters func(r Rung, avcC []byte)
	// Rungs are all that there are now; nil while that is not known. Those that were there once stay.
	Rungs func() []Rung
	// AwaitStored waits until a segment of the source is stored and nobody else can store another one in its place:
	// what is made of it may be kept then. An error: it may never be. nil: it always may.
	AwaitStored func(ctx context.Context, msn int64) error
	Waiting     *ByteBudget   // shared with other broadcasts; nil: each for itself
	Always      bool          // they are made whether somebody watches or not
	Idle        time.Duration // how long a rung is made after it was asked for; 20 s when 0
	Now         func() time.Time
	Logger      *slog.Logger
}

const (
	// tick is how often is looked after encoders and viewers.
	tick = 200 * time.Millisecond
	// calm is how long an encoder must live for its end to be forgiven; after maxFailures ends in a row rest is taken.
	calm        = 30 * time.Second
	maxFailures = 3
	rest        = 10 * time.Second
	// pause is how long nothing is begun behind an encoder that ended without having anything left to do.
	pause = time.Second
)

// Ladder makes the rungs of one broadcast.
type Ladder struct {
	opt     Options
	wake    chan struct{} // one token: look again
	uploads *uploader

	mu    sync.Mutex
	asked map[string]time.Time // by rung: when it was asked for last
	ended bool

	// Run's own.
	all      sync.WaitGroup
	runs     []*encoderRun       // that have not ended
	current  *encoderRun         // the one that goes on; nil: none does
	attached map[string]struct{} // rungs that the edge waits for
	rungs    map[string]Rung     // that there are, by ID
	hold     *window.Follower    // has the edge keep what an encoder may have to read again
	failures int
	refused  bool // there was no room for an encoder, which was said
	restTill time.Time
}

// New returns a Ladder; nothing is made before Run is called.
func New(o Options) *Ladder {
	if o.Idle <= 0 {
		o.Idle = 20 * time.Second
	}
	return &Ladder{
		opt: o, wake: make(chan struct{}, 1), uploads: newUploader(o), asked: map[string]time.Time{},
		attached: map[string]struct{}{}, rungs: map[string]Rung{},
	}
}

// Want says that somebody watches a rung. It does not wait.
func (c *Ladder) Want(id string) {
	c.mu.Lock()
	last, known := c.asked[id]
	now := c.opt.Now()
	c.asked[id] = now
	c.mu.Unlock()
	if !known || now.Sub(last) > c.opt.Idle {
		c.poke()
	}
}

func (c *Ladder) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run makes what is wanted until End is called and all is stored, or ctx ends. What is running then is ended.
func (c *Ladder) Run(ctx context.Context) error {
	keeping, stop := context.WithCancelCause(ctx)
	var stored sync.WaitGroup
	stored.Go(func() { c.uploads.run(keeping) })
	defer stored.Wait()
	defer stop(nil)
	defer c.all.Wait()
	defer c.stopAll(context.Canceled)
	alarm := time.NewTicker(tick)
	defer alarm.Stop()
	for {
		c.reap(ctx)
		more := c.keepHeads()
		if over := c.over(); over && len(c.runs) == 0 {
			c.uploads.close()
			stored.Wait()
			return nil
		} else if !over {
			c.adjust(ctx)
		}
		var due <-chan time.Time
		if len(c.runs) > 0 || c.opt.Always || c.resting() || more {
			due = alarm.C
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.wake:
		case <-due:
		}
		c.look()
	}
}

// End says that the broadcast has ended: what is in the encoders still comes out, and nothing is begun.
func (c *Ladder) End() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.poke()
}

func (c *Ladder) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// wanted are the rungs that somebody watches.
func (c *Ladder) wanted() []Rung {
	all, now := c.opt.Rungs(), c.opt.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(all), func(r Rung) bool {
		last, ok := c.asked[r.ID]
		return !c.opt.Always && (!ok || now.Sub(last) > c.opt.Idle)
	})
}

func (c *Ladder) resting() bool { return c.opt.Now().Before(c.restTill) }

// adjust has the encoders be those that are needed.
func (c *Ladder) adjust(ctx context.Context) {
	want := c.wanted()
	switch {
	case len(want) == 0:
		c.stopAll(errIdle)
		c.current = nil
	case c.resting():
	case c.current == nil && c.opt.Edge.Ended(): // it is only being stored
	case c.current == nil:
		c.begin(ctx, want)
	case !c.current.steady() || sameRungs(c.current.job.rungs, want):
	default:
		c.roll(ctx, want)
	}
}

// begin begins with the open segment. The one before it has an encoder of its own, which ends with it: anyone who
// begins to watch asks for that first, and one encoder would take twice as long for both.
func (c *Ladder) begin(ctx context.Context, want []Rung) {
	open := c.opt.Edge.Newest(c.opt.Source)
	for _, r := range want {
		c.opt.Output.Attach(r.ID, open-1)
	}
	if open == 0 {
		c.current = c.start(ctx, job{from: open, rungs: want})
		return
	}
	turn := make(chan struct{})
	c.current = c.start(ctx, job{from: open, rungs: want, turn: turn})
	c.start(ctx, job{from: open - 1, to: open, rungs: want, behind: c.current, over: turn})
}

// roll has another encoder go on with other rungs at the next border. Those that are new begin at once, by themselves.
func (c *Ladder) roll(ctx context.Context, want []Rung) {
	next := c.opt.Edge.Newest(c.opt.Source) + 1
	if !c.current.until(next) {
		return // it has begun just now: the next one then
	}
	old := c.current
	added := slices.DeleteFunc(slices.Clone(want), func(r Rung) bool { return old.job.has(r.ID) })
	before := []*encoderRun{old}
	if len(added) > 0 {
		before = append(before, c.start(ctx, job{from: next - 1, to: next, rungs: added}))
	}
	c.current = c.start(ctx, job{from: next, rungs: want, after: before})
}

func sameRungs(a, b []Rung) bool {
	return slices.EqualFunc(a, b, func(x, y Rung) bool { return x.ID == y.ID && x.Rate() == y.Rate() })
}

var (
	errIdle    = errors.New("nobody watches any more")
	errStuck   = errors.New("the encoder keeps pictures to itself")
	errNothing = errors.New("there is no picture to encode")
)

// start begins an encoder.
func (c *Ladder) start(ctx context.Context, j job) *encoderRun {
	for _, r := range j.rungs {
		c.attached[r.ID], c.rungs[r.ID] = struct{}{}, r
		c.opt.Output.Attach(r.ID, j.from)
	}
	if c.hold == nil {
		c.hold, _ = c.opt.Edge.Follow(c.opt.Source, j.from) // without one the encoder says why
	}
	if !j.ranged {
		j.videoRange = j.rungs[0].Range
	}
	run := newEncoderRun(c, j)
	c.opt.Logger.DebugContext(ctx, "encoder of rungs begins", "media_sequence", j.from, "before", j.to, "goes_on",
		len(j.stood) > 0)
	c.runs = append(c.runs, run)
	ctx, run.cancel = context.WithCancelCause(ctx)
	c.all.Go(func() {
		run.run(ctx)
		run.cancel(nil)
		c.poke()
	})
	return run
}

// stopAll ends every encoder at once.
func (c *Ladder) stopAll(why error) {
	for _, x := range c.runs {
		x.cancel(why)
	}
}

// look ends encoders that hang, and has those give what they hold that get nothing, or nothing more.
func (c *Ladder) look() {
	now, over := c.opt.Now(), c.over()
	for _, x := range c.runs {
		switch x.look(now) {
		case hangs:
			x.cancel(errStuck)
		case idle:
			x.finish()
		case well:
			if over {
				x.finish()
			}
		}
	}
}

// reap deals with the encoders that have ended, or are about to because another one has to follow.
func (c *Ladder) reap(ctx context.Context) {
	for _, x := range slices.Clone(c.runs) {
		next, follows := x.successor()
		over := x.over()
		if c.current == x && (follows || over) {
			c.current = nil
			if !follows { // whatever it was: what can't begin is not begun over and over
				c.restTill = c.opt.Now().Add(pause)
			}
			if c.forgiven(x) && follows && !c.over() {
				c.current = c.start(ctx, next)
			}
		} else if why := x.trouble(); over && why != nil {
			c.opt.Logger.WarnContext(ctx, "encoder of rungs ended before its time", "error", why)
		}
		if over {
			c.runs = slices.DeleteFunc(c.runs, func(o *encoderRun) bool { return o == x })
		}
	}
	if len(c.runs) == 0 && c.hold != nil {
		c.hold.Close()
		c.hold = nil
	}
	for id := range c.attached {
		if !slices.ContainsFunc(c.runs, func(x *encoderRun) bool { return x.job.has(id) }) {
			delete(c.attached, id)
			c.opt.Output.Detach(id)
		}
	}
}

// keepHeads keeps what was published of segments that are not gone on with here, and what a process before this one has
// left. more says that there may be some soon.
func (c *Ladder) keepHeads() (more bool) {
	for _, r := range c.opt.Rungs() {
		if _, known := c.rungs[r.ID]; !known {
			c.rungs[r.ID] = r
		}
	}
	all, more := c.opt.Output.Begun()
	for _, b := range all {
		c.uploads.put(made{rung: c.rungs[b.ID], msn: b.MSN, data: b.Data, head: !b.Whole})
	}
	return more
}

// forgiven reports whether an encoder that has ended may have a successor now.
func (c *Ladder) forgiven(x *encoderRun) bool {
	now := c.opt.Now()
	why := x.trouble()
	if why == nil {
		c.refused = false
		return true
	}
	if fault.Is(why, fault.Unavailable) { // nothing is wrong with it: there may be room soon
		if !c.refused {
			c.opt.Logger.Warn("no encoder of rungs: what is asked for is made segment by segment", "error", why)
		}
		c.refused = true
		return true
	}
	if now.Sub(x.began) > calm {
		c.failures = 0
	}
	c.failures++
	c.opt.Logger.Warn("encoder of rungs ended before its time", "error", why, "failures", c.failures)
	if c.failures < maxFailures {
		return true
	}
	c.failures, c.restTill = 0, now.Add(rest)
	return false
}
