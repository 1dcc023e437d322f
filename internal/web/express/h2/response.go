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
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	switch {
	case w.status != 0:
		return
	case status < http.StatusOK:
		w.st.c.out.interim(w.st, status, w.header)
		return
	}
	w.status, w.sent = status, w.header
	if w.exact {
		w.sent = w.header.Clone()
	}
	if v := w.sent["Content-Length"]; len(v) > 0 {
		n, err := strconv.ParseInt(v[0], 10, 64)
		if err != nil || n < 0 {
			delete(w.sent, "Content-Length")
			return
		}
		w.length = n
	}
}

// errTooMuch says that a handler wrote more than it had announced.
var errTooMuch = errors.New("more was written than Content-Length says")

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if len(p) == 0 {
		return 0, w.err
	}
	if bodyless(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(p))
	if w.length >= 0 && w.written > w.length {
		return 0, errTooMuch
	}
	last := w.written == w.length
	if !last && len(w.held)+len(p) <= maxHeld {
		w.held = append(w.held, p...)
		return len(p), w.err
	}
	if err := w.emit(p, last); err != nil {
		return 0, err
	}
	return len(p), nil
}

// copied are the buffers of ReadFrom.
var copied = sync.Pool{New: func() any { return new([32 << 10]byte) }} //nolint:gochecknoglobals // used again

// ReadFrom implements io.ReaderFrom.
func (w *response) ReadFrom(src io.Reader) (int64, error) {
	buf, _ := copied.Get().(*[32 << 10]byte)
	defer copied.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{src}, buf[:])
}

// FlushError is for http.ResponseController.
func (w *response) FlushError() error {
	w.WriteHeader(http.StatusOK)
	if err := w.emit(nil, false); err != nil {
		return err
	}
	w.st.c.out.flush()
	return nil
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() } // the next write says so

// EnableFullDuplex is for http.ResponseController: HTTP/2 is nothing else.
func (w *response) EnableFullDuplex() error { return nil }

// SetReadDeadline is for http.ResponseController.
func (w *response) SetReadDeadline(at time.Time) error {
	if w.st.body != nil {
		w.st.body.setDeadline(at)
	}
	return nil
}

// SetWriteDeadline is for http.ResponseController. One that is over breaks a write off.
func (w *response) SetWriteDeadline(at time.Time) error {
	if at.IsZero() {
		w.until.Store(nil)
		return nil
	}
	w.until.Store(&at)
	c := w.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	w.st.wake()
	return nil
}

// late reports whether the response had to have ended.
func (w *response) late() bool {
	until := w.until.Load()
	return until != nil && !time.Now().Before(*until)
}

// emit sends what is held and p; last: nothing comes behind it.
func (w *response) emit(p []byte, last bool) error {
	if w.err != nil || w.ended {
		return w.err
	}
	out := &w.st.c.out
	out.mu.Lock()
	if !out.alive(w.st) {
		w.err = errGone
	} else if w.late() {
		w.err = os.ErrDeadlineExceeded
	}
	if !w.started && w.err == nil {
		w.start(p, last)
	}
	if w.headOnly {
		w.held, p, last = w.held[:0], nil, false
	}
	if len(w.held) > 0 {
		w.put(w.held, last && len(p) == 0)
		w.held = w.held[:0]
	}
	if w.err == nil && !w.ended && (len(p) > 0 || last) {
		w.put(p, last)
	}
	if !w.st.leads.Load() && w.err == nil && len(out.buf) > 0 {
		w.err = out.send()
	}
	out.unlock()
	return w.err
}

// put sends a part of the body, and waits for room. It has the writer's lock, but not while it waits. A client has to
// take a piece of it within the time that it may stall, however small its windows are.
func (w *response) put(p []byte, last bool) {
	const piece = 32 << 10
	c := w.st.c
	var stalls time.Time
	var least int // how much may be left when the time is over
	for {
		p, w.err = c.out.data(w.st, p, last)
		if w.err != nil || len(p) == 0 {
			w.ended = last && w.err == nil
			return
		}
		if stalls.IsZero() || len(p) <= least {
			stalls, least = time.Now().Add(c.s.opt.StallTimeout), max(len(p)-piece, 0)
		}
		w.st.pass() // another goroutine has to hear of room
		_ = c.out.send()
		c.out.unlock()
		w.wait(stalls)
		c.out.mu.Lock()
		if w.err != nil {
			return
		}
	}
}

// wait waits for room, up to a time.
func (w *response) wait(stalls time.Time) {
	until := w.until.Load()
	if until == nil || until.After(stalls) {
		until = &stalls
	}
	w.st.waitForRoom(*until)
	if w.late() || !time.Now().Before(stalls) {
		w.err = os.ErrDeadlineExceeded
	}
}

// start sends the header fields, as net/http would; p is what the body goes on with behind what is held. It has the
// writer's lock.
func (w *response) start(p []byte, last bool) {
	w.started = true
	h := w.sent
	bare := len(w.held)+len(p) == 0
	if last && w.length < 0 && !bodyless(w.status) && (!bare || !w.headOnly) {
		h["Content-Length"] = []string{strconv.Itoa(len(w.held) + len(p))}
	}
	if _, typed := h["Content-Type"]; !typed && !bare && !bodyless(w.status) && h.Get("Content-Encoding") == "" {
		sample := w.held
		if len(sample) == 0 {
			sample = p
		}
		h["Content-Type"] = []string{http.DetectContentType(sample)}
	}
	if h.Get("Connection") == "close" {
		w.st.c.mu.Lock()
		w.st.c.streams.leave()
		w.st.c.mu.Unlock()
	}
	out := &w.st.c.out
	out.begin(w.status)
	out.fields(h, httpdate.Now())
	w.ended = w.headOnly || last && bare
	out.headers(w.st, w.ended)
}

// End sends the response to its end. Whoever counts what is unsent calls it before the handler has returned.
func (w *response) End() { w.end() }

// end ends the response; false when it is not as it was announced, or can't be sent.
func (w *response) end() bool {
	w.WriteHeader(http.StatusOK)
	if w.length >= 0 && w.written < w.length && !w.headOnly && !bodyless(w.status) {
		_ = w.emit(nil, false) // its beginning tells more than nothing
		return false
	}
	return w.emit(nil, true) == nil
}

func bodyless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}
