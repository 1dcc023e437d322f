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
func (f *requestContext) Deadline() (time.Time, bool) { return f.parent.Deadline() }

// Err implements context.Context.
func (f *requestContext) Err() error { return f.current(false).Err() }

// Value implements context.Context. What package context asks for with keys of its own must be of the context that Done
// is of.
func (f *requestContext) Value(key any) any { return f.current(false).Value(key) }

// Done implements context.Context.
func (f *requestContext) Done() <-chan struct{} { return f.current(true).Done() }

// current is the context behind this one now. watch: somebody wants to hear of its end.
func (f *requestContext) current(watch bool) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.own != nil:
		return f.own
	case !f.running:
		return over
	case !watch:
		return f.parent
	}
	f.own, f.cancel = context.WithCancel(f.parent)
	f.watched = make(chan struct{})
	f.c.l.wg.Go(f.watch)
	return f.own
}

// begin starts a request.
func (f *requestContext) begin() {
	f.mu.Lock()
	f.running = true
	f.mu.Unlock()
}

// end ends a request; the connection's goroutine may read again. It is false when that is over too.
func (f *requestContext) end() (again bool) {
	f.mu.Lock()
	f.running = false
	used := f.own != nil
	f.mu.Unlock()
	if !used {
		return true
	}
	f.cancel()
	_ = f.c.nc.SetReadDeadline(past) // if it is closed, nobody reads it
	<-f.watched
	f.c.due.reading = clockNone
	return false
}

// watch reads what the viewer sends ahead until the request is over, there is no more room, or the viewer has gone.
func (f *requestContext) watch() {
	defer close(f.watched)
	c := f.c
	c.makeRoom()
	f.mu.Lock()
	if f.running { // otherwise end has set the deadline that ends this
		_ = c.nc.SetReadDeadline(time.Time{})
	}
	f.mu.Unlock()
	for c.to < len(c.buf) {
		n, err := c.in.Read(c.buf[c.to:])
		c.to += n
		if err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				f.cancel()
			}
			return
		}
	}
}
