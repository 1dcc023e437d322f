package express

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// requestContext is the context of a connection's requests, one after the other. Most handlers never wait, so the
// viewer is watched only from the moment on when somebody asks for Done: from then on the context ends when the
// viewer's side of the connection does, as with net/http. A requestContext that somebody has asked ends with its
// request; one that nobody asked is the next request's too.
type requestContext struct {
	parent context.Context
	c      *conn

	mu      sync.Mutex
	running bool            // a handler is at work
	own     context.Context // from the first Done on
	cancel  context.CancelFunc
	watched chan struct{} // closed when the connection is no longer read here
}

func newRequestContext(c *conn) *requestContext { return &requestContext{parent: c.l.ctx, c: c} }

//nolint:gochecknoglobals // a constant: the context of a request that is over
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // ends here
	cancel()
	return ctx
}()

// Deadline implements context.Context.
func (r *requestContext) Deadline() (time.Time, bool) { return r.parent.Deadline() }

// Err implements context.Context.
func (r *requestContext) Err() error { return r.current(false).Err() }

// Value implements context.Context. What package context asks for with keys of its own must be of the context that Done
// is of.
func (r *requestContext) Value(key any) any { return r.current(false).Value(key) }

// Done implements context.Context.
func (r *requestContext) Done() <-chan struct{} { return r.current(true).Done() }

// current is the context behind this one now. watch: somebody wants to hear of its end.
func (r *requestContext) current(watch bool) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.own != nil:
		return r.own
	case !r.running:
		return over
	case !watch:
		return r.parent
	}
	r.own, r.cancel = context.WithCancel(r.parent)
	r.watched = make(chan struct{})
	r.c.l.wg.Go(r.watch)
	return r.own
}

// begin starts a request.
func (r *requestContext) begin() {
	r.mu.Lock()
	r.running = true
	r.mu.Unlock()
}

// end ends a request; the connection's goroutine may read again. It is false when that is over too.
func (r *requestContext) end() (again bool) {
	r.mu.Lock()
	r.running = false
	used := r.own != nil
	r.mu.Unlock()
	if !used {
		return true
	}
	r.cancel()
	_ = r.c.nc.SetReadDeadline(past) // if it is closed, nobody reads it
	<-r.watched
	r.c.due.reading = clockNone
	return false
}

// watch reads what the viewer sends ahead until the request is over, there is no more room, or the viewer has gone.
func (r *requestContext) watch() {
	defer close(r.watched)
	c := r.c
	c.makeRoom()
	r.mu.Lock()
	if r.running { // otherwise end has set the deadline that ends this
		_ = c.nc.SetReadDeadline(time.Time{})
	}
	r.mu.Unlock()
	for c.to < len(c.buf) {
		n, err := c.in.Read(c.buf[c.to:])
		c.to += n
		if err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				r.cancel()
			}
			return
		}
	}
}
