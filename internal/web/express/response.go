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

func (r *response) reset(headOnly bool) {
	clear(r.header)
	*r = response{
		c: r.c, header: r.header, headOnly: headOnly, last: r.c.last, length: -1, held: r.held[:0],
		pending: r.pending[:0],
	}
}

// Header implements http.ResponseWriter.
func (r *response) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) {
	if r.status != 0 || status < http.StatusOK {
		return
	}
	r.status = status
	if v := r.header["Content-Length"]; len(v) > 0 {
		n, err := strconv.ParseInt(v[0], 10, 64)
		if err != nil || n < 0 {
			delete(r.header, "Content-Length")
			return
		}
		r.length = n
	}
}

// Write implements http.ResponseWriter.
func (r *response) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if len(p) == 0 {
		return 0, nil
	}
	if bodyless(r.status) {
		return 0, http.ErrBodyNotAllowed
	}
	r.written += int64(len(p))
	if r.length >= 0 && r.written > r.length {
		return 0, http.ErrContentLength
	}
	if r.length < 0 && !r.started && len(r.held)+len(p) <= maxHeld {
		r.held = append(r.held, p...)
		return len(p), nil
	}
	begins := !r.started
	if begins {
		r.chunked = r.length < 0 && !r.headOnly
		r.start(p)
	}
	if r.headOnly {
		return len(p), r.emit(nil)
	}
	if r.chunked {
		r.openChunk(p, begins)
	}
	if err := r.emit(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// openChunk begins a chunk that ends with p; the first one has what was held before it.
func (r *response) openChunk(p []byte, first bool) {
	n := len(p)
	if first {
		n += len(r.held)
	} else {
		r.pending = append(r.pending, "\r\n"...)
	}
	r.pending = append(strconv.AppendInt(r.pending, int64(n), 16), "\r\n"...)
	if first {
		r.pending = append(r.pending, r.held...)
	}
}

// emit sends what is pending and what follows it.
func (r *response) emit(p []byte) error {
	if r.err == nil && len(r.pending)+len(p) > 0 {
		r.err = r.c.out.Write(r.pending, p)
	}
	r.pending = r.pending[:0]
	return r.err
}

// ReadFrom implements io.ReaderFrom: a file goes to the socket inside the kernel.
func (r *response) ReadFrom(src io.Reader) (int64, error) {
	r.WriteHeader(http.StatusOK)
	room := r.length - r.written
	if _, typed := r.header["Content-Type"]; room <= 0 || r.headOnly || !typed || bodyless(r.status) {
		return io.Copy(struct{ io.Writer }{r}, src)
	}
	if !r.started {
		r.start(nil)
	}
	if part, n := sectionOf(src, room); part != nil && r.err == nil {
		return r.sendFile(part, n)
	}
	return r.copy(src, room)
}

// copied are the buffers of copy.
var copied = sync.Pool{New: func() any { return new([32 << 10]byte) }} //nolint:gochecknoglobals // used again

// copy sends what is pending and what src has, at most room bytes: a body never runs into the next response.
func (r *response) copy(src io.Reader, room int64) (n int64, err error) {
	buf, _ := copied.Get().(*[32 << 10]byte)
	defer copied.Put(buf)
	for r.err == nil && n < room {
		k, err := src.Read(buf[:min(room-n, int64(len(buf)))])
		if k > 0 && r.emit(buf[:k]) == nil {
			n += int64(k)
			r.written += int64(k)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				r.err = err
			}
			break
		}
	}
	return n, r.err
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
		return restOfFile{f}, room
	}
	part, _ := src.(section)
	return part, room
}

// restOfFile is a file of which everything from its position on may be sent.
type restOfFile struct{ *os.File }

// Rest implements section.
func (r restOfFile) Rest() (file *os.File, off, n int64) {
	off, err := r.Seek(0, io.SeekCurrent)
	if err != nil { // a pipe: sendfile says what is wrong
		off = 0
	}
	return r.File, off, math.MaxInt64
}

// sendFile sends what is pending and at most n bytes of a file.
func (r *response) sendFile(part section, n int64) (int64, error) {
	f, off, left := part.Rest()
	n, r.err = r.c.out.SendFile(r.pending, f, off, min(n, left))
	r.pending = r.pending[:0]
	r.written += n
	if r.err == nil {
		_, r.err = part.Seek(n, io.SeekCurrent)
	}
	return n, r.err
}

// finish ends the response; false when the connection can't go on.
func (r *response) finish() bool {
	r.WriteHeader(http.StatusOK)
	switch {
	case r.chunked:
		r.pending = append(r.pending, "\r\n0\r\n\r\n"...)
		_ = r.emit(nil) // kept
	case !r.started:
		if r.length < 0 && !bodyless(r.status) && (!r.headOnly || len(r.held) > 0) {
			r.length = int64(len(r.held))
			r.header["Content-Length"] = []string{strconv.Itoa(len(r.held))}
		}
		r.start(nil)
		body := r.held
		if r.headOnly {
			body = nil
		}
		_ = r.emit(body) // kept
	}
	whole := r.headOnly || r.length < 0 || bodyless(r.status) || r.written == r.length
	return r.err == nil && whole && !r.last
}

func bodyless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// start makes the status line and the header fields, RFC 9112 sections 4 and 5, as net/http would: p is what is written
// first.
func (r *response) start(p []byte) {
	r.started = true
	h := r.header
	delete(h, "Transfer-Encoding")
	if bodyless(r.status) {
		delete(h, "Content-Length")
		if r.status == http.StatusNotModified {
			delete(h, "Content-Type")
		}
	} else if _, typed := h["Content-Type"]; !typed && len(r.held)+len(p) > 0 && len(h["Content-Encoding"]) == 0 {
		sample := p
		if len(r.held) > 0 {
			sample = append(slices.Clip(r.held), p[:min(len(p), maxHeld)]...)
		}
		h["Content-Type"] = []string{http.DetectContentType(sample)}
	}
	if v := h["Connection"]; len(v) > 0 {
		r.last = r.last || strings.EqualFold(v[0], "close")
		delete(h, "Connection")
	}
	r.last = r.last || r.c.resting.Load()
	b := append(r.pending[:0], "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(r.status), 10)
	b = append(append(b, ' '), statusText(r.status)...)
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
	if r.last {
		b = append(b, "\r\nConnection: close"...)
	}
	if r.chunked {
		b = append(b, "\r\nTransfer-Encoding: chunked"...)
	}
	r.pending = append(b, "\r\n\r\n"...)
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
