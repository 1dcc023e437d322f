package encode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"millrace/internal/fault"
)

// Reserve holds children that were started ahead: loading ffmpeg takes longer than decoding a picture. Children that
// are kept ready block on their standard input; each does one job and ends. None is there before the first job, and
// none once nobody has had a job for a while.
type Reserve struct {
	most int // children that are ready at once

	base   context.Context //nolint:containedctx // of all children: one that is ready belongs to no request
	cancel context.CancelCauseFunc
	all    sync.WaitGroup

	mu    sync.Mutex
	ready []*spare // in the order in which they were started
	ended bool
}

// spare is a child with its one job to come.
type spare struct {
	job    chan ImageJob
	done   chan error // of the job, once
	cancel context.CancelCauseFunc
	kind   string // its arguments
}

// spareTime is how long a child waits for its job.
const spareTime = 5 * time.Minute

// errNotNeeded ends a child that has waited for long, and one that has done its job but does not end.
var errNotNeeded = errors.New("the child is not needed any more")

// NewReserve returns a Reserve of at most so many children.
func NewReserve(most int) *Reserve {
	base, cancel := context.WithCancelCause(context.Background()) //nolint:forbidigo // ended by Run
	return &Reserve{most: most, base: base, cancel: cancel}
}

// Name implements lifecycle.Service.
func (r *Reserve) Name() string { return "spare encoders" }

// Run implements lifecycle.Service: it ends every child when ctx ends.
func (r *Reserve) Run(ctx context.Context) error {
	<-ctx.Done()
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.cancel(context.Cause(ctx))
	r.all.Wait()
	return context.Cause(ctx)
}

// do has a child do a job, and sees to it that so many more with the same arguments are ready. When Output returns
// before the child's output has ended, nobody waits for the child's end; otherwise how it ended counts.
func (r *Reserve) do(ctx context.Context, child ProcessOptions, keep int, job ImageJob) error {
	for {
		s, fresh, ok := r.take(child, keep)
		if !ok {
			return fault.New(fault.Unavailable, "the service is stopping: ask again in a moment")
		}
		if err := r.give(ctx, s, job); fresh || !errors.Is(err, errGone) {
			return err
		}
	}
}

// errGone is why a child has not begun its job: it was ended by somebody else.
var errGone = errors.New("the child is gone")

// give has a child do a job.
func (r *Reserve) give(ctx context.Context, s *spare, job ImageJob) error {
	s.job <- job
	stop := context.AfterFunc(ctx, func() { s.cancel(context.Cause(ctx)) })
	defer stop()
	return <-s.done
}

// take gives a child and sees to it that others are ready, in the place of those that have waited longest. fresh is one
// that was started just now.
func (r *Reserve) take(child ProcessOptions, keep int) (s *spare, fresh, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil, false, false
	}
	kind := strings.Join(child.Args, "\x00")
	same := func(other *spare) bool { return other.kind == kind }
	if i := slices.IndexFunc(r.ready, same); i >= 0 { // it is the likeliest to be loaded
		s = r.ready[i]
		r.ready = slices.Delete(r.ready, i, i+1)
	} else {
		s, fresh = r.spawn(child, kind), true
	}
	ready := 0
	for _, other := range r.ready {
		if same(other) {
			ready++
		}
	}
	for keep = min(keep, r.most); ready < keep; ready++ {
		r.ready = append(r.ready, r.spawn(child, kind))
	}
	for len(r.ready) > r.most {
		r.ready[0].cancel(errNotNeeded)
		r.ready = r.ready[1:]
	}
	return s, fresh, true
}

// spawn starts a child. The caller holds the lock.
func (r *Reserve) spawn(opts ProcessOptions, kind string) *spare {
	ctx, cancel := context.WithCancelCause(r.base)
	s := &spare{job: make(chan ImageJob, 1), done: make(chan error, 1), cancel: cancel, kind: kind}
	taken := make(chan struct{})
	var job ImageJob
	opts.Priority, opts.Hurry = Ahead, taken // it starts beside a job that somebody waits for
	opts.Input = func(ctx context.Context, in io.Writer) error {
		idle := time.AfterFunc(spareTime, func() { r.retire(s) })
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
		in := ending{Reader: out}
		err := job.Output(&in)
		if err == nil {
			if !in.ended {
				s.done <- nil
			}
			// What is left to do is to end.
			time.AfterFunc(lastWords, func() { cancel(errNotNeeded) })
		}
		return err
	}
	r.all.Go(func() {
		defer cancel(nil)
		err := NewProcess(opts).Run(ctx)
		r.drop(s)
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

// ending knows whether the end was reached.
type ending struct {
	io.Reader
	ended bool
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.Reader.Read(b)
	e.ended = e.ended || errors.Is(err, io.EOF)
	return n, err // io.EOF has to stay as it is
}

// lastWords is how long a child may take to end once its output was read.
const lastWords = 5 * time.Second

// retire ends a child that nobody has taken.
func (r *Reserve) retire(s *spare) {
	if r.drop(s) {
		s.cancel(errNotNeeded)
	}
}

// drop takes a child out of those that are ready; false when it is not among them.
func (r *Reserve) drop(s *spare) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.ready {
		if r.ready[i] == s {
			r.ready = append(r.ready[:i], r.ready[i+1:]...)
			return true
		}
	}
	return false
}
