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
func (l *Ladder) Want(id string) {
	l.mu.Lock()
	last, known := l.asked[id]
	now := l.opt.Now()
	l.asked[id] = now
	l.mu.Unlock()
	if !known || now.Sub(last) > l.opt.Idle {
		l.poke()
	}
}

func (l *Ladder) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run makes what is wanted until End is called and all is stored, or ctx ends. What is running then is ended.
func (l *Ladder) Run(ctx context.Context) error {
	keeping, stop := context.WithCancelCause(ctx)
	var stored sync.WaitGroup
	stored.Go(func() { l.uploads.run(keeping) })
	defer stored.Wait()
	defer stop(nil)
	defer l.all.Wait()
	defer l.stopAll(context.Canceled)
	alarm := time.NewTicker(tick)
	defer alarm.Stop()
	for {
		l.reap(ctx)
		more := l.keepHeads()
		if over := l.over(); over && len(l.runs) == 0 {
			l.uploads.close()
			stored.Wait()
			return nil
		} else if !over {
			l.adjust(ctx)
		}
		var due <-chan time.Time
		if len(l.runs) > 0 || l.opt.Always || l.resting() || more {
			due = alarm.C
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.wake:
		case <-due:
		}
		l.look()
	}
}

// End says that the broadcast has ended: what is in the encoders still comes out, and nothing is begun.
func (l *Ladder) End() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.poke()
}

func (l *Ladder) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// wanted are the rungs that somebody watches.
func (l *Ladder) wanted() []Rung {
	all, now := l.opt.Rungs(), l.opt.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(all), func(r Rung) bool {
		last, ok := l.asked[r.ID]
		return !l.opt.Always && (!ok || now.Sub(last) > l.opt.Idle)
	})
}

func (l *Ladder) resting() bool { return l.opt.Now().Before(l.restTill) }

// adjust has the encoders be those that are needed.
func (l *Ladder) adjust(ctx context.Context) {
	want := l.wanted()
	switch {
	case len(want) == 0:
		l.stopAll(errIdle)
		l.current = nil
	case l.resting():
	case l.current == nil && l.opt.Edge.Ended(): // it is only being stored
	case l.current == nil:
		l.begin(ctx, want)
	case !l.current.steady() || sameRungs(l.current.job.rungs, want):
	default:
		l.roll(ctx, want)
	}
}

// begin begins with the open segment. The one before it has an encoder of its own, which ends with it: anyone who
// begins to watch asks for that first, and one encoder would take twice as long for both.
func (l *Ladder) begin(ctx context.Context, want []Rung) {
	open := l.opt.Edge.Newest(l.opt.Source)
	for _, r := range want {
		l.opt.Output.Attach(r.ID, open-1)
	}
	if open == 0 {
		l.current = l.start(ctx, job{from: open, rungs: want})
		return
	}
	turn := make(chan struct{})
	l.current = l.start(ctx, job{from: open, rungs: want, turn: turn})
	l.start(ctx, job{from: open - 1, to: open, rungs: want, behind: l.current, over: turn})
}

// roll has another encoder go on with other rungs at the next border. Those that are new begin at once, by themselves.
func (l *Ladder) roll(ctx context.Context, want []Rung) {
	next := l.opt.Edge.Newest(l.opt.Source) + 1
	if !l.current.until(next) {
		return // it has begun just now: the next one then
	}
	old := l.current
	added := slices.DeleteFunc(slices.Clone(want), func(r Rung) bool { return old.job.has(r.ID) })
	before := []*encoderRun{old}
	if len(added) > 0 {
		before = append(before, l.start(ctx, job{from: next - 1, to: next, rungs: added}))
	}
	l.current = l.start(ctx, job{from: next, rungs: want, after: before})
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
func (l *Ladder) start(ctx context.Context, j job) *encoderRun {
	for _, r := range j.rungs {
		l.attached[r.ID], l.rungs[r.ID] = struct{}{}, r
		l.opt.Output.Attach(r.ID, j.from)
	}
	if l.hold == nil {
		l.hold, _ = l.opt.Edge.Follow(l.opt.Source, j.from) // without one the encoder says why
	}
	if !j.ranged {
		j.videoRange = j.rungs[0].Range
	}
	run := newEncoderRun(l, j)
	l.opt.Logger.DebugContext(ctx, "encoder of rungs begins", "media_sequence", j.from,
		"end_media_sequence", j.to, "goes_on", len(j.stood) > 0)
	l.runs = append(l.runs, run)
	ctx, run.cancel = context.WithCancelCause(ctx)
	l.all.Go(func() {
		run.run(ctx)
		run.cancel(nil)
		l.poke()
	})
	return run
}

// stopAll ends every encoder at once.
func (l *Ladder) stopAll(why error) {
	for _, x := range l.runs {
		x.cancel(why)
	}
}

// look ends encoders that hang, and has those give what they hold that get nothing, or nothing more.
func (l *Ladder) look() {
	now, over := l.opt.Now(), l.over()
	for _, x := range l.runs {
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
func (l *Ladder) reap(ctx context.Context) {
	for _, x := range slices.Clone(l.runs) {
		next, follows := x.successor()
		over := x.over()
		if l.current == x && (follows || over) {
			l.current = nil
			if !follows { // whatever it was: what can't begin is not begun over and over
				l.restTill = l.opt.Now().Add(pause)
			}
			if l.forgiven(x) && follows && !l.over() {
				l.current = l.start(ctx, next)
			}
		} else if why := x.trouble(); over && why != nil {
			l.opt.Logger.WarnContext(ctx, "encoder of rungs ended before its time", "error", why)
		}
		if over {
			l.runs = slices.DeleteFunc(l.runs, func(o *encoderRun) bool { return o == x })
		}
	}
	if len(l.runs) == 0 && l.hold != nil {
		l.hold.Close()
		l.hold = nil
	}
	for id := range l.attached {
		if !slices.ContainsFunc(l.runs, func(x *encoderRun) bool { return x.job.has(id) }) {
			delete(l.attached, id)
			l.opt.Output.Detach(id)
		}
	}
}

// keepHeads keeps what was published of segments that are not gone on with here, and what a process before this one has
// left. more says that there may be some soon.
func (l *Ladder) keepHeads() (more bool) {
	for _, r := range l.opt.Rungs() {
		if _, known := l.rungs[r.ID]; !known {
			l.rungs[r.ID] = r
		}
	}
	all, more := l.opt.Output.Begun()
	for _, b := range all {
		l.uploads.put(made{rung: l.rungs[b.ID], msn: b.MSN, data: b.Data, head: !b.Whole})
	}
	return more
}

// forgiven reports whether an encoder that has ended may have a successor now.
func (l *Ladder) forgiven(x *encoderRun) bool {
	now := l.opt.Now()
	why := x.trouble()
	if why == nil {
		l.refused = false
		return true
	}
	if fault.Is(why, fault.Unavailable) { // nothing is wrong with it: there may be room soon
		if !l.refused {
			l.opt.Logger.Warn("no encoder of rungs: what is asked for is made segment by segment", "error", why)
		}
		l.refused = true
		return true
	}
	if now.Sub(x.began) > calm {
		l.failures = 0
	}
	l.failures++
	l.opt.Logger.Warn("encoder of rungs ended before its time", "error", why, "failures", l.failures)
	if l.failures < maxFailures {
		return true
	}
	l.failures, l.restTill = 0, now.Add(rest)
	return false
}
