// Package transform re-encodes a publication's video, between its session and its packager, where needed: a test stream
// gets a watermark, and a codec that players cannot play becomes H.264. Audio passes unchanged. Every output frame has
// the time of its input frame.
//
// It must never know HLS, who publishes, or why a picture has to change. Goroutines: Run, called by the owner, and
// those that it starts: an encoder with its pipes. Where nothing has to change, no frame passes through a queue: the
// caller's goroutine does the work.
package transform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/overlay"
)

// Output takes frames as the session writes them; its methods say the contract.
type Output interface {
	Configure(c frame.Config) error
	Discontinuity(reason string) error
	Rate(fps float64, constant bool) error
	Write(f frame.Frame) error
	Close(cause error) error
}

// Encoder encodes a picture while it streams; encode.Engine fits.
type Encoder interface {
	Live(
		ctx context.Context, job encode.LiveArgs, input func(context.Context, io.Writer) error,
		output func(context.Context, io.Reader) error,
	) error
}

// Options are what a Transform needs.
type Options struct {
	Output  Output
	Encoder Encoder
	// Layers gives what lies over every picture, when the first has come; it may wait for it. nil: only what players
	// can't play is encoded again.
	Layers func(context.Context) []overlay.Layer
	Logger *slog.Logger
}

const (
	// bytes of frames that wait for the encoder; behind it pictures are dropped up to the next key frame.
	maxQueue = 16 << 20
	// of stream time that the encoder may keep a picture; a machine short of time starts one in ten seconds.
	patience      = 15 * time.Second
	soundAhead    = 500 * time.Millisecond // by how much sound may be ahead of the pictures in the encoder
	soundPatience = 3 * time.Second        // when it is, it waits for no more than that
	closePatience = 20 * time.Second       // how long Close waits for the last pictures
	maxFailures   = 3                      // encoders that end by themselves, each within calm of the last
	calm          = time.Minute
)

// ErrPicture is why a publication ends whose picture can't be encoded.
var ErrPicture = errors.New("the picture can't be decoded: send H.264")

// Transform is one publication's; it implements the session's output.
type Transform struct {
	opt  Options
	on   bool          // the picture is encoded again; set once, by the caller's goroutine
	done chan struct{} // closed when Run has ended

	mu      sync.Mutex
	queue   []call
	bytes   int
	waitKey bool // pictures are dropped until the next key frame
	dropped int
	closed  bool
	failed  error
	wake    chan struct{} // one token: the queue has grown

	out worker // Run's own
}

// call is one call of the session's, to be made good behind the encoder.
type call struct {
	do   func(*worker) error // nil: frame
	f    frame.Frame
	last bool
}

// New returns a Transform; Run has to be called.
func New(o Options) *Transform {
	t := &Transform{opt: o, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	t.out = worker{t: t, out: o.Output, log: o.Logger}
	return t
}

// Replaces reports whether a picture players can't play is encoded again.
func Replaces(c frame.Config) bool { return c.Kind == frame.Video && c.Codec == frame.VP8 }

// needed reports whether a picture has to be encoded again.
func (t *Transform) needed(c frame.Config) bool {
	return Replaces(c) || c.Kind == frame.Video && t.opt.Layers != nil
}

// Configure implements the session's output.
func (t *Transform) Configure(c frame.Config) error {
	t.on = t.on || t.needed(c)
	if !t.on {
		return t.opt.Output.Configure(c)
	}
	return t.post(call{do: func(w *worker) error { return w.configure(c) }})
}

// Discontinuity implements the session's output.
func (t *Transform) Discontinuity(reason string) error {
	if !t.on {
		return t.opt.Output.Discontinuity(reason)
	}
	return t.post(call{do: func(w *worker) error { return w.discontinuity(reason) }})
}

// Rate implements the session's output.
func (t *Transform) Rate(fps float64, constant bool) error {
	if !t.on {
		return t.opt.Output.Rate(fps, constant)
	}
	return t.post(call{do: func(w *worker) error {
		w.fps = fps
		return w.pass(func() error { return w.out.Rate(fps, constant) })
	}})
}

// Write implements the session's output.
func (t *Transform) Write(f frame.Frame) error {
	if !t.on {
		return t.opt.Output.Write(f)
	}
	return t.post(call{f: f})
}

// Close implements the session's output: it returns when everything is encoded and written.
func (t *Transform) Close(cause error) error {
	if !t.on {
		t.finish()
		return t.opt.Output.Close(cause)
	}
	_ = t.post(call{last: true, do: func(w *worker) error { return w.close(cause) }}) // a failure was returned before
	t.finish()
	late := time.AfterFunc(closePatience, func() { t.out.abort(errors.New("the encoder does not end")) })
	defer late.Stop()
	<-t.done
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// finish lets Run end once the queue is empty.
func (t *Transform) finish() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.signal()
}

// post queues a call. It never waits: an encoder that does not keep up costs pictures, not the publication's time.
func (t *Transform) post(c call) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed != nil && !c.last {
		return t.failed
	}
	if c.do == nil && c.f.Kind == frame.Video {
		if t.waitKey = t.waitKey && !c.f.Key || t.bytes > maxQueue; t.waitKey {
			t.drop()
			return nil
		}
	}
	t.queue = append(t.queue, c)
	t.bytes += len(c.f.Data)
	t.signal()
	return nil
}

func (t *Transform) drop() {
	if t.dropped++; t.dropped == 1 {
		t.opt.Logger.Warn("the encoder does not keep up: pictures are dropped")
	}
}

func (t *Transform) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Run does what is queued until the publication is closed, or ctx ends.
func (t *Transform) Run(ctx context.Context) error {
	defer close(t.done)
	defer t.out.abort(context.Canceled)
	for {
		c, ok, closed := t.take()
		switch {
		case ok:
			if err := t.out.handle(ctx, c); err != nil {
				t.fail(err)
			}
			continue
		case closed:
			return nil
		}
		select {
		case <-ctx.Done():
			t.fail(context.Cause(ctx))
			return context.Cause(ctx)
		case <-t.wake:
		}
	}
}

func (t *Transform) take() (c call, ok, closed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		t.queue = nil
		return call{}, false, t.closed
	}
	c = t.queue[0]
	t.queue[0] = call{}
	t.queue = t.queue[1:]
	t.bytes -= len(c.f.Data)
	return c, true, false
}

// fail ends the publication with its next call.
func (t *Transform) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil {
		t.failed = fmt.Errorf("encode picture: %w", err)
	}
}
