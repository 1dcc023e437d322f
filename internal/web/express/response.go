package express

import (
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"millrace/internal/web/httpdate"
)

// maxHeld is how many bytes of a body whose length was not announced wait for its end; a longer one is chunked. It is
// net/http's figure.
const maxHeld = 2048

// response is the http.ResponseWriter of a connection, used again for every response.
type response struct {
	c        *conn
	header   http.Header
	status   int // 0: not said
	headOnly bool
	started  bool  // the head is made
	chunked  bool  // the body goes out in chunks: its length was not announced
	last     bool  // the connection ends with this response
	length   int64 // that was announced; -1: none
	written  int64 // bytes of the body that the handler has given, sent or refused
	held     []byte
	pending  []byte // to be sent before the next bytes of the body: the head, the ends of chunks
	err      error
}

func (w *response) reset(headOnly bool) {
	clear(w.header)
	*w = response{
		c: w.c, header: w.header, headOnly: headOnly, last: w.c.last, length: -1, held: w.held[:0],
		pending: w.pending[:0],
	}
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	if w.status != 0 || status < http.StatusOK {
		return
	}
	w.status = status
	if v := w.header["Content-Length"]; len(v) > 0 {
		n, err := strconv.ParseInt(v[0], 10, 64)
		if err != nil || n < 0 {
			delete(w.header, "Content-Length")
			return
		}
		w.length = n
	}
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if len(p) == 0 {
		return 0, nil
	}
	if bodyless(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(p))
	if w.length >= 0 && w.written > w.length {
		return 0, http.ErrContentLength
	}
	if w.length < 0 && !w.started && len(w.held)+len(p) <= maxHeld {
		w.held = append(w.held, p...)
		return len(p), nil
	}
	begins := !w.started
	if begins {
		w.chunked = w.length < 0 && !w.headOnly
		w.start(p)
	}
	if w.headOnly {
		return len(p), w.emit(nil)
	}
	if w.chunked {
		w.openChunk(p, begins)
	}
	if err := w.emit(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// openChunk begins a chunk that ends with p; the first one has what was held before it.
func (w *response) openChunk(p []byte, first bool) {
	n := len(p)
	if first {
		n += len(w.held)
	} else {
		w.pending = append(w.pending, "\r\n"...)
	}
	w.pending = append(strconv.AppendInt(w.pending, int64(n), 16), "\r\n"...)
	if first {
		w.pending = append(w.pending, w.held...)
	}
}

// emit sends what is pending and what follows it.
func (w *response) emit(p []byte) error {
	if w.err == nil && len(w.pending)+len(p) > 0 {
		w.err = w.c.out.Write(w.pending, p)
	}
	w.pending = w.pending[:0]
	return w.err
}

// ReadFrom implements io.ReaderFrom: a file goes to the socket inside the kernel.
func (w *response) ReadFrom(src io.Reader) (int64, error) {
	w.WriteHeader(http.StatusOK)
	room := w.length - w.written
	if _, typed := w.header["Content-Type"]; room <= 0 || w.headOnly || !typed || bodyless(w.status) {
		return io.Copy(struct{ io.Writer }{w}, src)
	}
	if !w.started {
		w.start(nil)
	}
	if part, n := sectionOf(src, room); part != nil && w.err == nil {
		return w.sendFile(part, n)
	}
	return w.copy(src, room)
}

// copied are the buffers of copy.
var copied = sync.Pool{New: func() any { return new([32 << 10]byte) }} //nolint:gochecknoglobals // used again

// copy sends what is pending and what src has, at most room bytes: a body never runs into the next response.
func (w *response) copy(src io.Reader, room int64) (n int64, err error) {
	buf, _ := copied.Get().(*[32 << 10]byte)
	defer copied.Put(buf)
	for w.err == nil && n < room {
		k, err := src.Read(buf[:min(room-n, int64(len(buf)))])
		if k > 0 && w.emit(buf[:k]) == nil {
			n += int64(k)
			w.written += int64(k)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.err = err
			}
			break
		}
	}
	return n, w.err
}

// section is a reader of some bytes of a file that others read at the same time.
type section interface {
	io.Seeker
	// Rest is what is not read yet. The file stays open until ReadFrom returns.
	Rest() (f *os.File, off, n int64)
}

// sectionOf is the section that src reads, and how much of it is wanted; nil when it reads something else.
func sectionOf(src io.Reader, room int64) (section, int64) {
	if some, ok := src.(*io.LimitedReader); ok {
		src, room = some.R, min(room, max(some.N, 0))
	}
	if f, ok := src.(*os.File); ok {
		return whole{f}, room
	}
	part, _ := src.(section)
	return part, room
}

// whole is a file of which everything from its position on may be sent.
type whole struct{ *os.File }

// Rest implements section.
func (f whole) Rest() (file *os.File, off, n int64) {
	off, err := f.Seek(0, io.SeekCurrent)
	if err != nil { // a pipe: sendfile says what is wrong
		off = 0
	}
	return f.File, off, math.MaxInt64
}

// sendFile sends what is pending and at most n bytes of a file.
func (w *response) sendFile(part section, n int64) (int64, error) {
	f, off, left := part.Rest()
	n, w.err = w.c.out.SendFile(w.pending, f, off, min(n, left))
	w.pending = w.pending[:0]
	w.written += n
	if w.err == nil {
		_, w.err = part.Seek(n, io.SeekCurrent)
	}
	return n, w.err
}

// finish ends the response; false when the connection can't go on.
func (w *response) finish() bool {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.chunked:
		w.pending = append(w.pending, "\r\n0\r\n\r\n"...)
		_ = w.emit(nil) // kept
	case !w.started:
		if w.length < 0 && !bodyless(w.status) && (!w.headOnly || len(w.held) > 0) {
			w.length = int64(len(w.held))
			w.header["Content-Length"] = []string{strconv.Itoa(len(w.held))}
		}
		w.start(nil)
		body := w.held
		if w.headOnly {
			body = nil
		}
		_ = w.emit(body) // kept
	}
	whole := w.headOnly || w.length < 0 || bodyless(w.status) || w.written == w.length
	return w.err == nil && whole && !w.last
}

func bodyless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// start makes the status line and the header fields, RFC 9112 sections 4 and 5, as net/http would: p is what is written
// first.
func (w *response) start(p []byte) {
	w.started = true
	h := w.header
	delete(h, "Transfer-Encoding")
	if bodyless(w.status) {
		delete(h, "Content-Length")
		if w.status == http.StatusNotModified {
			delete(h, "Content-Type")
		}
	} else if _, typed := h["Content-Type"]; !typed && len(w.held)+len(p) > 0 && len(h["Content-Encoding"]) == 0 {
		sample := p
		if len(w.held) > 0 {
			sample = append(slices.Clip(w.held), p[:min(len(p), maxHeld)]...)
		}
		h["Content-Type"] = []string{http.DetectContentType(sample)}
	}
	if v := h["Connection"]; len(v) > 0 {
		w.last = w.last || strings.EqualFold(v[0], "close")
		delete(h, "Connection")
	}
	w.last = w.last || w.c.resting.Load()
	b := append(w.pending[:0], "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(w.status), 10)
	b = append(append(b, ' '), statusText(w.status)...)
	if _, dated := h["Date"]; !dated {
		b = append(append(b, "\r\nDate: "...), httpdate.Now()...)
	}
	for name, values := range h {
		if !plainName(name) {
			continue
		}
		for _, v := range values {
			b = append(append(append(b, "\r\n"...), name...), ": "...)
			b = appendValue(b, v)
		}
	}
	if w.last {
		b = append(b, "\r\nConnection: close"...)
	}
	if w.chunked {
		b = append(b, "\r\nTransfer-Encoding: chunked"...)
	}
	w.pending = append(b, "\r\n\r\n"...)
}

func statusText(status int) string {
	if s := http.StatusText(status); s != "" {
		return s
	}
	return "status code " + strconv.Itoa(status)
}

// appendValue lets no value end its line.
func appendValue(b []byte, v string) []byte {
	if strings.IndexByte(v, '\r') >= 0 || strings.IndexByte(v, '\n') >= 0 {
		v = strings.NewReplacer("\r", " ", "\n", " ").Replace(v)
	}
	if n := len(v); n > 0 && (blank(v[0]) || blank(v[n-1])) {
		v = strings.Trim(v, " \t")
	}
	return append(b, v...)
}

func blank(b byte) bool { return b == ' ' || b == '\t' }
