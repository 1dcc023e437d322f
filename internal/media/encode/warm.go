package encode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"millrace/internal/fault"
)

// Warm runs short jobs on children that were started ahead: loading ffmpeg takes longer than decoding a picture. Children that are kept
// ready block on their standard input; each does one job and ends. None is there before the first job, and none once nobody has had a
// job for a while.
type Warm struct {
	engine *Engine
	args   []string
	keep   int

	base   context.Context //nolint:containedctx // of all children: one that is ready belongs to no request
	cancel context.CancelCauseFunc
	all    sync.WaitGroup

	mu    sync.Mutex
	ready []*spare // the one that was started last is last
	ended bool
}

// spare is a child with its one job to come.
type spare struct {
	job    chan ImageJob
	done   chan error // of the job, once
	cancel context.CancelCauseFunc
}

// spareTime is how long a child waits for its job.
const spareTime = 5 * time.Minute

// errNotNeeded ends a child that has waited for long, and one that has done its job but does not end.
var errNotNeeded = errors.New("the child is not needed any more")

// NewWarm returns a Warm for programs with these arguments, of which keep are kept ready.
func NewWarm(e *Engine, args []string, keep int) *Warm {
	base, cancel := context.WithCancelCause(context.Background()) //nolint:forbidigo // ended by Run
	return &Warm{engine: e, args: args, keep: keep, base: base, cancel: cancel}
}

// Name implements lifecycle.Service.
func (w *Warm) Name() string { return "spare encoders" }

// Run implements lifecycle.Service: it ends every child when ctx ends.
func (w *Warm) Run(ctx context.Context) error {
	<-ctx.Done()
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.cancel(context.Cause(ctx))
	w.all.Wait()
	return context.Cause(ctx)
}

// Do does a job once the budget has room. When Output has all it wants, Do returns: nobody waits for the child's end.
func (w *Warm) Do(ctx context.Context, p Priority, job ImageJob) error {
	release, err := w.engine.opts.Budget.Acquire(ctx, p, 1)
	if err != nil {
		return err
	}
	defer release()
	for {
		s, fresh, ok := w.take()
		if !ok {
			return fault.New(fault.Unavailable, "the service is stopping: ask again in a moment")
		}
		if err = w.give(ctx, s, job); fresh || !errors.Is(err, errGone) {
			return blame(err, "the picture can't be decoded")
		}
	}
}

// errGone is why a child has not begun its job: it was ended by somebody else.
var errGone = errors.New("the child is gone")

// give has a child do a job.
func (w *Warm) give(ctx context.Context, s *spare, job ImageJob) error {
	s.job <- job
	stop := context.AfterFunc(ctx, func() { s.cancel(context.Cause(ctx)) })
	defer stop()
	return <-s.done
}

// take gives a child and sees to it that others are ready. fresh is one that was started just now.
func (w *Warm) take() (s *spare, fresh, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return nil, false, false
	}
	if n := len(w.ready); n > 0 {
		s = w.ready[n-1]
		w.ready = w.ready[:n-1]
	} else {
		s, fresh = w.spawn(), true
	}
	for len(w.ready) < w.keep {
		w.ready = append(w.ready, w.spawn())
	}
	return s, fresh, true
}

// spawn starts a child. The caller holds the lock.
func (w *Warm) spawn() *spare {
	ctx, cancel := context.WithCancelCause(w.base)
	s := &spare{job: make(chan ImageJob, 1), done: make(chan error, 1), cancel: cancel}
	taken := make(chan struct{})
	var job ImageJob
	opts := w.engine.imageChild(w.args)
	opts.Priority, opts.Hurry = Ahead, taken // it starts beside a job that somebody waits for
	opts.Input = func(ctx context.Context, in io.Writer) error {
		idle := time.AfterFunc(spareTime, func() { w.retire(s) })
		defer idle.Stop()
		select {
		case job = <-s.job:
			if ctx.Err() != nil { // ended at the same moment: it takes no job any more
				return errGone
			}
			close(taken)
			return job.Input(ctx, in)
		case <-ctx.Done():
			return fmt.Errorf("wait for a job: %w", context.Cause(ctx))
		}
	}
	opts.Output = func(ctx context.Context, out io.Reader) error {
		select {
		case <-taken:
		case <-ctx.Done():
			return fmt.Errorf("wait for a job: %w", context.Cause(ctx))
		}
		err := job.Output(out)
		if err == nil {
			s.done <- nil
			// What is left to do is to end.
			time.AfterFunc(lastWords, func() { cancel(errNotNeeded) })
		}
		return err
	}
	w.all.Go(func() {
		defer cancel(nil)
		err := NewProcess(opts).Run(ctx)
		w.drop(s)
		select {
		case <-taken:
		default:
			err = fmt.Errorf("%w: %w", errGone, err)
		}
		select {
		case s.done <- err: // unless its output has said so
		default:
		}
	})
	return s
}

// lastWords is how long a child may take to end once its output was read.
const lastWords = 2 * time.Second

// retire ends a child that nobody has taken.
func (w *Warm) retire(s *spare) {
	if w.drop(s) {
		s.cancel(errNotNeeded)
	}
}

// drop takes a child out of those that are ready; false when it is not among them.
func (w *Warm) drop(s *spare) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.ready {
		if w.ready[i] == s {
			w.ready = append(w.ready[:i], w.ready[i+1:]...)
			return true
		}
	}
	return false
}
