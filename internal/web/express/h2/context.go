package h2

import (
	"context"
	"sync"
	"time"
)

// requestContext is the context of a request. Most handlers of players never wait, so what it takes to be woken up is
// made when somebody asks for Done: that goroutine may be about to wait, and another one has to read on.
type requestContext struct {
	parent context.Context
	st     *stream

	mu   sync.Mutex
	over bool            // the stream was reset, or the handler has returned
	own  context.Context // from the first Done on
	stop context.CancelFunc
}

// Deadline implements context.Context.
func (r *requestContext) Deadline() (time.Time, bool) { return r.parent.Deadline() }

// Done implements context.Context.
func (r *requestContext) Done() <-chan struct{} {
	r.st.pass()
	return r.current(true).Done()
}

// Err implements context.Context.
func (r *requestContext) Err() error { return r.current(false).Err() }

// Value implements context.Context. What package context asks for with keys of its own must be of the context that Done
// is of.
func (r *requestContext) Value(key any) any { return r.current(false).Value(key) }

// current is the context behind this one now. watch: somebody wants to hear of its end.
func (r *requestContext) current(watch bool) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.own != nil:
		return r.own
	case !r.over && !watch:
		return r.parent
	}
	r.own, r.stop = context.WithCancel(r.parent)
	if r.over {
		r.stop()
	}
	return r.own
}

// cancel ends it.
func (r *requestContext) cancel() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	if r.stop != nil {
		r.stop()
	}
}
