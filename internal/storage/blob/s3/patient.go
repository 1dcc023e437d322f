package s3

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// stallTime is how long nothing at all may come of a response that somebody reads, or go of a request: a connection
// whose other end has vanished says nothing of it, and a caller that waits for it would for ever.
const stallTime = 30 * time.Second

// The head of a response has to come within headTime where somebody reads an object or asks about it, as a viewer waits
// for it. Where an object or a piece of one is stored it has takenTime, which begins again with each piece of the body
// that goes. What the storage has to work for, such as lists and the ends of uploads, has responseTimeout.
const (
	headTime  = 10 * time.Second
	takenTime = 30 * time.Second
)

// patient ends requests to which no response comes, and responses that have stalled. Sending and reading slowly is
// allowed, and so is a body of any length.
type patient struct {
	base  http.RoundTripper
	limit time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, end := context.WithCancelCause(r.Context())
	w := wait{limit: patience(r)}
	silent := fmt.Errorf("no response has come for %s: %w", w.limit, os.ErrDeadlineExceeded)
	w.timer = time.AfterFunc(w.limit, func() { end(silent) })
	r = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = requestBody{r.Body, &w}
	}
	resp, err := p.base.RoundTrip(r)
	w.end()
	if context.Cause(ctx) == silent { //nolint:errorlint // it is never wrapped here
		if err == nil {
			_ = resp.Body.Close() // it came as its time ended
		}
		return nil, silent
	}
	if err != nil {
		end(nil)
		return nil, err //nolint:wrapcheck // a transport's errors are its own
	}
	a := &responseBody{ReadCloser: resp.Body, ctx: ctx, end: end, patience: p.limit}
	a.stalled = fmt.Errorf("nothing has come for %s: %w", p.limit, os.ErrDeadlineExceeded)
	a.timer = time.AfterFunc(p.limit, func() { end(a.stalled) })
	a.timer.Stop()
	resp.Body = a
	return resp, nil
}

// patience is how long a request waits for the head of its response.
func patience(r *http.Request) time.Duration {
	switch {
	case r.Method == http.MethodHead, r.Method == http.MethodGet && r.URL.Query().Get("x-id") == "GetObject":
		return headTime
	case r.Method == http.MethodPut:
		return takenTime
	}
	return responseTimeout
}

// wait is for the head of a response.
type wait struct {
	limit time.Duration

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

// goesOn begins it again.
func (w *wait) goesOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over { // a body may be sent for longer than its response takes
		w.timer.Reset(w.limit)
	}
}

func (w *wait) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}

// requestBody is the body of a request. The transport asks for more of it when the connection has taken what there was.
type requestBody struct {
	io.ReadCloser
	wait *wait
}

// Read implements io.Reader.
func (r requestBody) Read(p []byte) (int, error) {
	r.wait.goesOn()
	return r.ReadCloser.Read(p) //nolint:wrapcheck // a body's errors are its own
}

// responseBody is the body of a response.
type responseBody struct {
	io.ReadCloser
	ctx      context.Context //nolint:containedctx // of the one request
	end      context.CancelCauseFunc
	patience time.Duration
	timer    *time.Timer // runs while somebody waits
	stalled  error
}

// Read implements io.Reader.
func (r *responseBody) Read(p []byte) (int, error) {
	r.timer.Reset(r.patience)
	n, err := r.ReadCloser.Read(p)
	r.timer.Stop()
	if err != nil && err != io.EOF && context.Cause(r.ctx) == r.stalled { //nolint:errorlint // neither is wrapped
		err = r.stalled
	}
	return n, err //nolint:wrapcheck // a body's errors are its own
}

// Close implements io.Closer.
func (r *responseBody) Close() error {
	err := r.ReadCloser.Close()
	r.timer.Stop()
	r.end(nil)
	return err //nolint:wrapcheck // a body's errors are its own
}

// dialer makes connections whose writes end when they have stalled. A response's head has a limit of its own.
type dialer struct {
	net.Dialer

	stall time.Duration
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err //nolint:wrapcheck // a dialer's errors are its own
	}
	return &pressed{conn, d.stall}, nil
}

type pressed struct {
	net.Conn

	stall time.Duration
}

// Write implements io.Writer.
func (pr *pressed) Write(p []byte) (int, error) {
	if err := pr.SetWriteDeadline(time.Now().Add(pr.stall)); err != nil {
		return 0, err //nolint:wrapcheck // a connection's errors are its own
	}
	return pr.Conn.Write(p) //nolint:wrapcheck // likewise
}
