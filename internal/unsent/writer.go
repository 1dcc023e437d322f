package unsent

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// Patience is how long a response may wait for its client to take something.
const Patience = 20 * time.Second

const (
	// chunk is how much of a file is given to the system at a time. A client has to take that within Patience: 13 kB
	// a second.
	chunk = 256 << 10
)

// writer is a response that is broken off when its client takes nothing. The deadline is a timer's: the server's own
// are moved by a message to another goroutine over HTTP/2, which costs more than a small response.
type writer struct {
	http.ResponseWriter

	control *http.ResponseController
	major   int  // of HTTP
	wrote   bool // something that the server may have buffered

	mu    sync.Mutex
	timer *time.Timer // nil: nothing was written yet
	since time.Time   // it waits for the client; zero: it does not
}

func newWriter(w http.ResponseWriter, major int) *writer {
	return &writer{ResponseWriter: w, control: http.NewResponseController(w), major: major}
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements io.Writer, piece by piece.
func (w *writer) Write(p []byte) (n int, err error) {
	for {
		some := p[n:min(len(p), n+Piece)]
		w.wait()
		k, err := w.ResponseWriter.Write(some)
		w.accepted()
		n += k
		w.wrote = true
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// pieces are the buffers of ReadFrom.
var pieces = sync.Pool{New: func() any { return new([Piece]byte) }} //nolint:gochecknoglobals // used again

// ReadFrom implements io.ReaderFrom: over HTTP/1.1 in clear text the system may send a file by itself.
func (w *writer) ReadFrom(src io.Reader) (n int64, err error) {
	from, ok := w.ResponseWriter.(io.ReaderFrom)
	if !ok {
		buf, _ := pieces.Get().(*[Piece]byte)
		defer pieces.Put(buf)
		return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{src}, buf[:])
	}
	left, bounded := src.(*io.LimitedReader)
	if !bounded {
		left = &io.LimitedReader{R: src, N: 1<<63 - 1}
	}
	for left.N > 0 {
		want := min(left.N, chunk)
		w.wait()
		k, err := from.ReadFrom(&io.LimitedReader{R: left.R, N: want})
		w.accepted()
		n += k
		left.N -= k
		w.wrote = true
		if err != nil || k < want {
			return n, err
		}
	}
	return n, nil
}

// FlushError is for http.ResponseController.
func (w *writer) FlushError() error {
	w.wait()
	defer w.accepted()
	w.wrote = false
	return w.control.Flush()
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() } // the next write says so

// ender is a response that can be sent to its end before its handler has returned, as that of web/express/h2.
type ender interface{ End() }

// finish sends what the server has buffered. What is left for it to do over HTTP/2 waits for no client.
func (w *writer) finish() {
	if e, ok := w.ResponseWriter.(ender); ok {
		w.wait()
		defer w.accepted()
		e.End()
		return
	}
	if w.major >= 2 && w.wrote {
		_ = w.FlushError() // the stream is broken
	}
}

// wait begins to wait for the client, taken ends it. Afterwards the server's writer is left alone.
func (w *writer) wait() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Now()
	if w.timer == nil {
		w.timer = time.AfterFunc(Patience, w.breakOff)
	} else {
		w.timer.Reset(Patience)
	}
}

func (w *writer) accepted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = time.Time{}
	w.timer.Stop()
}

// breakOff resets the stream of HTTP/2, and ends what is written over HTTP/1.1.
func (w *writer) breakOff() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.since.IsZero() && time.Since(w.since) >= Patience { // not one that has begun meanwhile
		_ = w.control.SetWriteDeadline(time.Unix(1, 0)) // not every writer has deadlines
	}
}
