package s3

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// stallTime is how long nothing at all may come of a response that somebody reads, or go of a request: a connection
// whose other end has vanished says nothing of it, and a caller that waits for it would for ever.
const stallTime = 30 * time.Second

// patient ends responses that have stalled. Reading slowly is allowed, and so is a response of any length.
type patient struct {
	base  http.RoundTripper
	limit time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, end := context.WithCancelCause(r.Context())
	resp, err := p.base.RoundTrip(r.WithContext(ctx))
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

// responseBody is the body of one.
type responseBody struct {
	io.ReadCloser
	ctx      context.Context //nolint:containedctx // of the one request
	end      context.CancelCauseFunc
	patience time.Duration
	timer    *time.Timer // runs while somebody waits
	stalled  error
}

// Read implements io.Reader.
func (a *responseBody) Read(p []byte) (int, error) {
	a.timer.Reset(a.patience)
	n, err := a.ReadCloser.Read(p)
	a.timer.Stop()
	if err != nil && err != io.EOF && context.Cause(a.ctx) == a.stalled { //nolint:errorlint // neither is ever wrapped here
		err = a.stalled
	}
	return n, err //nolint:wrapcheck // a body's errors are its own
}

// Close implements io.Closer.
func (a *responseBody) Close() error {
	err := a.ReadCloser.Close()
	a.timer.Stop()
	a.end(nil)
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
func (c *pressed) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err //nolint:wrapcheck // a connection's errors are its own
	}
	return c.Conn.Write(p) //nolint:wrapcheck // likewise
}
