package liveladder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/window"
)

// job is what one encoder does.
type job struct {
	rungs []Rung
	from  int64         // the first segment that goes in
	to    int64         // the segment before which it ends; 0: it goes on
	after []*encoderRun // whose pictures come before this one's
	// behind is one that must have found room before this one asks for some; nil: none.
	behind *encoderRun
	// turn, once closed, says that what is at hand behind the first part may go in; nil: at once. over is another's
	// turn: closed at the end.
	turn, over chan struct{}
	// videoRange is that of the pictures that go in; unless ranged, that of those which the rungs were first made of.
	videoRange frame.VideoRange
	ranged     bool
	stood      map[string]mark // by rung: what an encoder that died has made of it
}

func (j *job) has(id string) bool {
	return slices.ContainsFunc(j.rungs, func(r Rung) bool { return r.ID == id })
}

// mark is where a rung stands: so much of a segment's media is out.
type mark struct {
	msn   int64
	buf   []byte // nothing: it begins
	parts int
	shown int64 // ticks: presentation of the last picture that is out
}

// encoderRun is one encoder, from a segment on.
type encoderRun struct {
	c      *Ladder
	job    job
	began  time.Time
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // ends what goes in
	input  context.Context    //nolint:containedctx // ends when what goes in has to
	fed    chan struct{}      // closed when the encoder waits for pictures
	ended  chan struct{}      // closed when it has ended

	mu      sync.Mutex
	to      int64 // as job's
	in      feedState
	went    []*fedSegment // segments that went in and are not out in every rung, in order
	outs    []*out
	moved   time.Time // when a picture came out last, or went in while none was missing
	came    time.Time // when something went in last
	paused  bool      // it was told to end
	gave    bool      // a picture has come out
	writing bool      // the encoder has not taken yet what was written
	next    *job      // what another encoder has to do, once the input has ended
	err     error     // why it ended, once it has
}

// feedState is where the input stands.
type feedState struct {
	at    int64 // segment; 0 before the first one
	init  int   // its init segment
	base  int64 // ticks: decoding time of the first picture
	any   bool  // a segment has begun to go in
	based bool
	ended bool
}

// fedSegment is a segment as it went in. Times are in ticks.
type fedSegment struct {
	msn   int64
	times []int64 // of decoding, in that order
	shown []int64 // ascending
	parts []window.PartEnd
	done  bool
	keys  []border
}

// border is a time behind which a key frame has to stand: the earliest picture there is one, and so are those that came
// before it was known.
type border struct{ after, least int64 }

func newEncoderRun(c *Ladder, j job) *encoderRun {
	now := c.opt.Now()
	x := &encoderRun{
		c: c, job: j, to: j.to, began: now, moved: now, came: now, fed: make(chan struct{}),
		ended: make(chan struct{}),
	}
	x.input, x.stop = context.WithCancel(context.Background()) //nolint:forbidigo // ended by run
	for _, r := range j.rungs {
		o := &out{x: x, rung: r, mark: mark{msn: j.from}}
		if m, ok := j.stood[r.ID]; ok {
			o.mark = m
		}
		x.outs = append(x.outs, o)
	}
	return x
}

// until has the encoder end before a segment; false when that has gone in.
func (e *encoderRun) until(msn int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.in.ended || e.in.at >= msn {
		return false
	}
	e.to = msn
	return true
}

// steady reports whether it gets pictures, and will go on.
func (e *encoderRun) steady() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.in.any && !e.in.ended && e.to == 0
}

// finish ends the input: what is in the encoder comes out.
func (e *encoderRun) finish() { e.stop() }

func (e *encoderRun) over() bool {
	select {
	case <-e.ended:
		return true
	default:
		return false
	}
}

// trouble is why it ended before its time.
func (e *encoderRun) trouble() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// successor is what another encoder has to do.
func (e *encoderRun) successor() (job, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.next == nil {
		return job{}, false
	}
	return *e.next, true
}

// run encodes until the input has ended and all is out.
func (e *encoderRun) run(ctx context.Context) {
	defer close(e.ended)
	if e.job.over != nil {
		defer close(e.job.over)
	}
	defer e.stop()
	// A panic of what reads and writes it ends it like any other fault.
	err := fault.Guard(func() error { return e.encode(ctx) })
	if trace := fault.Trace(err); trace != "" {
		err = fmt.Errorf("encode rungs: %w%s", err, trace)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	cause := context.Cause(ctx)
	idle := errors.Is(cause, errIdle)
	if !idle && !errors.Is(cause, errNothing) {
		e.err = err
	}
	switch {
	case idle, e.err == nil && !e.in.ended, !e.in.any: // nothing is left to do, or nothing was begun
		e.next = nil
	case e.next == nil && e.to == 0 && (e.err != nil || e.paused): // it died, or was told to end in the middle
		e.next = e.rest()
	}
	e.in.ended = true
	for _, o := range e.outs {
		o.leave()
	}
}

// encode is the encoder's run.
func (e *encoderRun) encode(ctx context.Context) error {
	if b := e.job.behind; b != nil {
		select {
		case <-b.fed:
		case <-b.ended:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	work := encode.LadderArgs{Timescale: e.c.opt.Timescale, Whole: e.job.over != nil}
	var outputs []func(context.Context, io.Reader) error
	for _, o := range e.outs {
		work.Rungs = append(work.Rungs, encode.RungArgs{
			Width: o.rung.Width, Height: o.rung.Height, Range: e.job.videoRange,
			CRF: o.rung.CRF, Bitrate: o.rung.Rate(), Level: o.rung.Level,
			NoReorder: true, FrameRate: o.rung.FrameRate,
		})
		outputs = append(outputs, o.read)
	}
	return e.c.opt.Encoder.Ladder(ctx, work, e.write, outputs)
}

// rest is what is left to do of what died: every rung goes on where it stood. The caller holds the lock.
func (e *encoderRun) rest() *job {
	j := job{rungs: e.job.rungs, from: e.outs[0].msn, stood: map[string]mark{}}
	for _, o := range e.outs {
		j.from = min(j.from, o.msn)
		j.stood[o.rung.ID] = o.mark
	}
	return &j
}

// health is how an encoder does.
type health int

const (
	well  health = iota
	hangs        // it keeps pictures to itself though more come
	idle         // it keeps pictures to itself because none come, and those are the last of their segment
)

const (
	slow   = 3 * time.Second        // for an encoder to take a picture
	hunger = 300 * time.Millisecond // without a picture, so that a stretch has ended
)

// look says how the encoder does.
func (e *encoderRun) look(now time.Time) health {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case !e.missing():
	case now.Sub(e.moved) > slow && (e.writing || now.Sub(e.came) < slow/2):
		return hangs
	case !e.in.ended && e.gave && e.went[len(e.went)-1].done && now.Sub(e.came) > hunger && now.Sub(e.moved) > hunger:
		return idle
	}
	return well
}

// missing reports whether pictures went in that did not come out of every rung. The caller holds the lock.
func (e *encoderRun) missing() bool {
	for _, s := range e.went {
		for _, o := range e.outs {
			if n := len(s.shown); n > 0 && s.msn >= o.msn && o.last < s.shown[n-1] {
				return true
			}
		}
	}
	return false
}
