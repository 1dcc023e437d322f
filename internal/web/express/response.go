package express

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"millrace/internal/socket"
)

const (
	together = 16 << 10 // bytes of a body that go out in one write with the head
	maxHeld  = 1 << 20  // bytes of a body without Content-Length that wait for its end
)

// response is the http.ResponseWriter of a connection, used again for every answer.
type response struct {
	c        *conn
	header   http.Header
	status   int // 0: not said
	headOnly bool
	started  bool  // the head is out
	length   int64 // that was announced; -1: none
	sent     int64 // bytes of the body
	held     []byte
	out      []byte
	last     bool // the connection ends with this answer
	err      error
}

func (w *response) reset(headOnly bool) {
	clear(w.header)
	w.status, w.headOnly, w.started, w.length, w.sent, w.held, w.err = 0, headOnly, false, -1, 0, w.held[:0], nil
	w.last = w.c.last
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. Interim answers are left out.
func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	if w.started {
		return w.body(p)
	}
	w.announce()
	if w.length < 0 && w.bodyless() {
		return 0, http.ErrBodyNotAllowed
	}
	if w.length < 0 && len(w.held)+len(p) <= maxHeld {
		w.held = append(w.held, p...)
		return len(p), nil
	}
	if w.length < 0 { // too much to wait for: its end is the connection's
		w.last = true
		if err := w.start(w.held); err != nil {
			return 0, err
		}
		return w.body(p)
	}
	if w.headOnly {
		return len(p), w.start(nil)
	}
	if int64(len(p)) > w.length {
		return 0, http.ErrContentLength
	}
	if err := w.start(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// announce reads the Content-Length that the handler has set.
func (w *response) announce() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if v := w.header["Content-Length"]; w.length < 0 && len(v) == 1 {
		if n, err := strconv.ParseInt(v[0], 10, 63); err == nil && n >= 0 {
			w.length = n
		}
	}
}

func (w *response) bodyless() bool {
	return w.status == http.StatusNoContent || w.status == http.StatusNotModified
}

// start writes the head, and the first of the body with it.
func (w *response) start(body []byte) error {
	w.started = true
	w.sent = int64(len(body))
	w.appendHead()
	if len(body) <= together {
		w.out = append(w.out, body...)
		_, w.err = w.c.nc.Write(w.out)
		return w.err
	}
	both := net.Buffers{w.out, body}
	_, w.err = both.WriteTo(w.c.nc)
	return w.err
}

// body writes what follows.
func (w *response) body(p []byte) (int, error) {
	if w.headOnly || len(p) == 0 {
		return len(p), w.err
	}
	if w.length >= 0 && w.sent+int64(len(p)) > w.length {
		return 0, http.ErrContentLength
	}
	n, err := w.c.nc.Write(p)
	w.sent += int64(n)
	if err != nil {
		w.err = err
	}
	return n, err
}

// ReadFrom implements io.ReaderFrom: a file goes to the socket inside the kernel.
func (w *response) ReadFrom(src io.Reader) (int64, error) {
	w.announce()
	if w.length <= 0 || w.headOnly {
		return io.Copy(struct{ io.Writer }{w}, src)
	}
	if !w.started {
		w.started = true
		w.appendHead()
		if w.err = socket.WriteMore(w.c.nc, w.out); w.err != nil {
			return 0, w.err
		}
	}
	n, err := w.c.nc.ReadFrom(src)
	w.sent += n
	if err != nil {
		w.err = err
	}
	return n, err
}

// finish ends the answer; false when the connection can't go on.
func (w *response) finish() bool {
	if !w.started {
		w.announce()
		if w.length < 0 {
			w.length = int64(len(w.held))
			if !w.bodyless() {
				w.header["Content-Length"] = []string{strconv.FormatInt(w.length, 10)}
			}
		}
		body := w.held
		if w.headOnly {
			body = nil
		}
		_ = w.start(body) // kept
	}
	if cap(w.held) > together {
		w.held = nil
	}
	whole := w.headOnly || w.bodyless() || w.sent == w.length
	return w.err == nil && whole && !w.last
}

// appendHead makes the status line and the header fields, RFC 9112 sections 4 and 5.
func (w *response) appendHead() {
	b := append(w.out[:0], "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(w.status), 10)
	b = append(append(b, ' '), http.StatusText(w.status)...)
	b = append(b, "\r\nDate: "...)
	b = append(b, date()...)
	for name, values := range w.header {
		for _, v := range values {
			b = append(append(b, "\r\n"...), name...)
			b = append(b, ": "...)
			for i := range len(v) {
				if v[i] == '\r' || v[i] == '\n' {
					b = append(b, ' ')
				} else {
					b = append(b, v[i])
				}
			}
		}
	}
	if w.last {
		b = append(b, "\r\nConnection: close"...)
	}
	w.out = append(b, "\r\n\r\n"...)
}

// stamp is the Date of one second.
type stamp struct {
	second int64
	text   string
}

//nolint:gochecknoglobals // the time of day, made once a second
var lastStamp atomic.Pointer[stamp]

func date() string {
	now := time.Now()
	s := lastStamp.Load()
	if s == nil || s.second != now.Unix() {
		s = &stamp{now.Unix(), now.UTC().Format(http.TimeFormat)}
		lastStamp.Store(s)
	}
	return s.text
}
