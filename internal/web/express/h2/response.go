package h2

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/web/httpdate"
)

// maxHeld is how many bytes of a body wait for more, or for its end. It is net/http's figure.
const maxHeld = 4 << 10

// response is an http.ResponseWriter, and what http.ResponseController asks for.
type response struct {
	st       *stream
	header   http.Header
	exact    bool // what the handler does to header after WriteHeader is of no account
	sent     http.Header
	status   int // 0: not said
	headOnly bool
	started  bool  // the header fields are on their way
	ended    bool  // and the end of the stream
	length   int64 // that was announced; -1: none
	written  int64 // bytes of the body that the handler has given
	held     []byte
	err      error

	until atomic.Pointer[time.Time] // when it has to have ended; nil: no matter when
}

func newResponse(st *stream, r *http.Request) *response {
	w := &response{st: st, header: http.Header{}, headOnly: r.Method == http.MethodHead, length: -1}
	until := time.Now().Add(st.c.s.opt.WriteTimeout)
	w.until.Store(&until)
	return w
}

// Header implements http.ResponseWriter.
func (r *response) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) {
	switch {
	case r.status != 0:
		return
	case status < http.StatusOK:
		r.st.c.out.interim(r.st, status, r.header)
		return
	}
	r.status, r.sent = status, r.header
	if r.exact {
		r.sent = r.header.Clone()
	}
	if v := r.sent["Content-Length"]; len(v) > 0 {
		n, err := strconv.ParseInt(v[0], 10, 64)
		if err != nil || n < 0 {
			delete(r.sent, "Content-Length")
			return
		}
		r.length = n
	}
}

// errTooMuch says that a handler wrote more than it had announced.
var errTooMuch = errors.New("more was written than Content-Length says")

// Write implements http.ResponseWriter.
func (r *response) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if len(p) == 0 {
		return 0, r.err
	}
	if bodyless(r.status) {
		return 0, http.ErrBodyNotAllowed
	}
	r.written += int64(len(p))
	if r.length >= 0 && r.written > r.length {
		return 0, errTooMuch
	}
	last := r.written == r.length
	if !last && len(r.held)+len(p) <= maxHeld {
		r.held = append(r.held, p...)
		return len(p), r.err
	}
	if err := r.emit(p, last); err != nil {
		return 0, err
	}
	return len(p), nil
}

// copied are the buffers of ReadFrom.
var copied = sync.Pool{New: func() any { return new([32 << 10]byte) }} //nolint:gochecknoglobals // used again

// ReadFrom implements io.ReaderFrom.
func (r *response) ReadFrom(src io.Reader) (int64, error) {
	buf, _ := copied.Get().(*[32 << 10]byte)
	defer copied.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{r}, struct{ io.Reader }{src}, buf[:])
}

// FlushError is for http.ResponseController.
func (r *response) FlushError() error {
	r.WriteHeader(http.StatusOK)
	if err := r.emit(nil, false); err != nil {
		return err
	}
	r.st.c.out.flush()
	return nil
}

// Flush implements http.Flusher.
func (r *response) Flush() { _ = r.FlushError() } // the next write says so

// EnableFullDuplex is for http.ResponseController: HTTP/2 is nothing else.
func (r *response) EnableFullDuplex() error { return nil }

// SetReadDeadline is for http.ResponseController.
func (r *response) SetReadDeadline(at time.Time) error {
	if r.st.body != nil {
		r.st.body.setDeadline(at)
	}
	return nil
}

// SetWriteDeadline is for http.ResponseController. One that is over breaks a write off.
func (r *response) SetWriteDeadline(at time.Time) error {
	if at.IsZero() {
		r.until.Store(nil)
		return nil
	}
	r.until.Store(&at)
	c := r.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	r.st.wake()
	return nil
}

// late reports whether the response had to have ended.
func (r *response) late() bool {
	until := r.until.Load()
	return until != nil && !time.Now().Before(*until)
}

// emit sends what is held and p; last: nothing comes behind it.
func (r *response) emit(p []byte, last bool) error {
	if r.err != nil || r.ended {
		return r.err
	}
	out := &r.st.c.out
	out.mu.Lock()
	if !out.alive(r.st) {
		r.err = errGone
	} else if r.late() {
		r.err = os.ErrDeadlineExceeded
	}
	if !r.started && r.err == nil {
		r.start(p, last)
	}
	if r.headOnly {
		r.held, p, last = r.held[:0], nil, false
	}
	if len(r.held) > 0 {
		r.put(r.held, last && len(p) == 0)
		r.held = r.held[:0]
	}
	if r.err == nil && !r.ended && (len(p) > 0 || last) {
		r.put(p, last)
	}
	if !r.st.leads.Load() && r.err == nil && len(out.buf) > 0 {
		r.err = out.send()
	}
	out.unlock()
	return r.err
}

// put sends a part of the body, and waits for room. It has the writer's lock, but not while it waits. A client has to
// take a piece of it within the time that it may stall, however small its windows are.
func (r *response) put(p []byte, last bool) {
	const piece = 32 << 10
	c := r.st.c
	var stalls time.Time
	var least int // how much may be left when the time is over
	for {
		p, r.err = c.out.data(r.st, p, last)
		if r.err != nil || len(p) == 0 {
			r.ended = last && r.err == nil
			return
		}
		if stalls.IsZero() || len(p) <= least {
			stalls, least = time.Now().Add(c.s.opt.StallTimeout), max(len(p)-piece, 0)
		}
		r.st.pass() // another goroutine has to hear of room
		_ = c.out.send()
		c.out.unlock()
		r.wait(stalls)
		c.out.mu.Lock()
		if r.err != nil {
			return
		}
	}
}

// wait waits for room, up to a time.
func (r *response) wait(stalls time.Time) {
	until := r.until.Load()
	if until == nil || until.After(stalls) {
		until = &stalls
	}
	r.st.waitForRoom(*until)
	if r.late() || !time.Now().Before(stalls) {
		r.err = os.ErrDeadlineExceeded
	}
}

// start sends the header fields, as net/http would; p is what the body goes on with behind what is held. It has the
// writer's lock.
func (r *response) start(p []byte, last bool) {
	r.started = true
	h := r.sent
	bare := len(r.held)+len(p) == 0
	if last && r.length < 0 && !bodyless(r.status) && (!bare || !r.headOnly) {
		h["Content-Length"] = []string{strconv.Itoa(len(r.held) + len(p))}
	}
	if _, typed := h["Content-Type"]; !typed && !bare && !bodyless(r.status) && h.Get("Content-Encoding") == "" {
		sample := r.held
		if len(sample) == 0 {
			sample = p
		}
		h["Content-Type"] = []string{http.DetectContentType(sample)}
	}
	if h.Get("Connection") == "close" {
		r.st.c.mu.Lock()
		r.st.c.streams.leave()
		r.st.c.mu.Unlock()
	}
	out := &r.st.c.out
	out.begin(r.status)
	out.fields(h, httpdate.Now())
	r.ended = r.headOnly || last && bare
	out.headers(r.st, r.ended)
}

// End sends the response to its end. Whoever counts what is unsent calls it before the handler has returned.
func (r *response) End() { r.end() }

// end ends the response; false when it is not as it was announced, or can't be sent.
func (r *response) end() bool {
	r.WriteHeader(http.StatusOK)
	if r.length >= 0 && r.written < r.length && !r.headOnly && !bodyless(r.status) {
		_ = r.emit(nil, false) // its beginning tells more than nothing
		return false
	}
	return r.emit(nil, true) == nil
}

func bodyless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}
