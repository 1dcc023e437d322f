// Package pace requires request bodies to arrive at a minimum rate: a client that sends a byte now and then gets a 408
// and does not hold its connection for long. Only the time counts in which the service waits for the client, not the
// time that a disk or a database takes. It must never know what is sent. It starts no goroutine.
package pace

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// Rate is how much has to come of a body, in bytes a second: a twentieth of what a slow mobile link carries.
	Rate = 1000
	// Grace is how far a body may be behind, and how long a client may pause that has kept pace.
	Grace = 10 * time.Second
	// UploadGrace is that of a file that is uploaded, which goes on when a link comes back.
	UploadGrace = time.Minute

	// unneeded is how long a body may take of a request that needs none, and what is left of one after the response.
	unneeded = time.Second
)

// Conn is told when a request of a connection waits for the client, as socket.Counted is.
type Conn interface {
	// Waits begins a wait. What has come is enough up to a time.
	Waits(upTo time.Time)
	// Came ends it.
	Came()
}

// ErrSlow ends the body of a client that does not keep pace. It is a timeout, os.ErrDeadlineExceeded.
var ErrSlow error = slowError{} //nolint:errname // a sentinel with a method

// Status is that of the response to a body that was TooSlow: Request Timeout, RFC 9110 section 15.5.9.
const Status = http.StatusRequestTimeout

// TooSlow reports whether the reading of a body has ended as it came too slowly: below the pace, or not before a
// deadline that its handler has set. err has to be the body's own, as a timeout of storage looks the same.
func TooSlow(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

type slowError struct{}

func (slowError) Error() string   { return "the body comes at less than 1000 bytes a second" }
func (slowError) Timeout() bool   { return true }
func (slowError) Temporary() bool { return true }

// Is implements the interface of errors.Is.
func (slowError) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// Keep has the body of a request keep pace, and returns what a handler is to be given in place of w and r, and what is
// to be called when it has returned. A deadline for reading that the handler sets holds as well. conn may be nil.
func Keep(
	w http.ResponseWriter, r *http.Request, grace time.Duration, conn Conn,
) (http.ResponseWriter, *http.Request, func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return w, r, func() {}
	}
	if conn == nil {
		conn = nobody{}
	}
	begun := time.Now()
	b := &body{
		ReadCloser: r.Body, conn: conn, control: http.NewResponseController(w), grace: grace, credit: grace,
	}
	until := grace
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete: // net/http reads it before it responds
		until = unneeded
	}
	b.allow(begun.Add(until))
	with := *r
	with.Body = b
	return &writer{w, b}, &with, func() {
		if r.ProtoMajor == 1 && !b.ended { // net/http reads on
			b.allow(time.Now().Add(unneeded))
			conn.Waits(begun) // until the connection is idle
		}
	}
}

// body is a request's.
type body struct {
	io.ReadCloser
	conn    Conn
	control *http.ResponseController
	grace   time.Duration
	credit  time.Duration // for which nothing need come
	ended   bool          // it was read to its end
	failed  error

	mu      sync.Mutex
	paced   time.Time // deadline of the pace, and that of the handler; zero: none
	handler time.Time
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	begun := time.Now()
	last := begun.Add(b.credit)
	b.allow(last)
	b.conn.Waits(last.Add(-b.grace))
	n, err := b.ReadCloser.Read(p)
	b.conn.Came()
	now := time.Now()
	b.credit = min(b.credit-now.Sub(begun)+time.Duration(n)*time.Second/Rate, b.grace)
	b.allow(time.Time{})
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		b.ended = true
	case errors.Is(err, os.ErrDeadlineExceeded) && !now.Before(last):
		b.failed = ErrSlow
		err = ErrSlow
	}
	return n, err
}

// allow sets the deadline of the pace.
func (b *body) allow(until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paced = until
	_ = b.set() // not every writer has deadlines
}

// set sets the deadline that comes first. It needs the lock.
func (b *body) set() error {
	first := b.paced
	if first.IsZero() || !b.handler.IsZero() && b.handler.Before(first) {
		first = b.handler
	}
	return b.control.SetReadDeadline(first)
}

// writer lets the handler set a deadline beside that of the pace.
type writer struct {
	http.ResponseWriter
	body *body
}

// SetReadDeadline is for http.ResponseController.
func (w *writer) SetReadDeadline(t time.Time) error {
	w.body.mu.Lock()
	defer w.body.mu.Unlock()
	w.body.handler = t
	return w.body.set()
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() } // the next write says so

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// nobody is told in place of a connection that is not known.
type nobody struct{}

func (nobody) Waits(time.Time) {}
func (nobody) Came()           {}
