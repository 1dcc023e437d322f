package h2

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// written is how many bytes of frames are given to TLS as soon as there are so many: three of the largest.
const written = 48 << 10

// buffered is how many there are at most, but for very many header fields.
const buffered = written + frameSize + frameHead

// writer gathers what a connection sends. The goroutine that reads leaves in it what its handlers write, until it is
// about to wait; any other sends what it has written at once.
type writer struct {
	c *conn

	mu     sync.Mutex
	buf    []byte // frames
	spare  *[buffered]byte
	block  bytes.Buffer // of header fields
	packed *hpack.Encoder
	err    error // nothing can be sent any more

	table   tableSizes
	pending atomic.Bool // somebody wanted to flush who could not
}

// tableSizes are what a peer allows the table of the fields that are sent to have, SETTINGS_HEADER_TABLE_SIZE: between
// two blocks, the smallest and the last (RFC 7541 section 4.2).
type tableSizes struct {
	mu       sync.Mutex
	few, now uint32
	changed  bool
}

func (t *tableSizes) set(size uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = min(size, tableSize)
	t.few = min(t.few, t.now)
	t.changed = true
}

// take says what is new.
func (t *tableSizes) take(say func(size uint32)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed {
		say(t.few)
		say(t.now)
		t.few, t.changed = t.now, false
	}
}

// buffers are those of writers that have something to send.
var buffers = sync.Pool{New: func() any { return new([buffered]byte) }} //nolint:gochecknoglobals // used again

func (w *writer) init(c *conn) {
	w.c = c
	w.packed = hpack.NewEncoder(&w.block)
	w.packed.SetMaxDynamicTableSizeLimit(tableSize)
	w.table.few, w.table.now = tableSize, tableSize
}

// room makes the buffer have some. It needs the lock, as all that follows.
func (w *writer) room() {
	if w.spare == nil {
		w.spare, _ = buffers.Get().(*[buffered]byte)
		w.buf = w.spare[:0]
	}
}

// send gives everything to TLS, and to the socket with as few system calls as can be. While these wait for the client,
// what was given is in memory once, as records.
func (w *writer) send() error {
	w.c.mu.Lock()
	w.acknowledge()
	if waiting := w.c.streams.control; len(waiting) > 0 {
		w.room()
		w.buf = append(w.buf, waiting...)
		w.c.streams.control = waiting[:0]
	}
	w.c.mu.Unlock()
	if len(w.buf) > 0 && w.err == nil {
		w.c.wire.Hold()
		_, w.err = w.c.nc.Write(w.buf)
		w.buf = w.buf[:0]
		w.done()
		if err := w.c.wire.Release(); w.err == nil {
			w.err = err
		}
		if w.err != nil {
			_ = w.c.wire.Close() // the goroutine that reads ends
		}
	}
	w.buf = w.buf[:0]
	return w.err
}

// done gives the buffer back when there is nothing in it.
func (w *writer) done() {
	if w.spare != nil && len(w.buf) == 0 {
		buffers.Put(w.spare)
		w.spare, w.buf = nil, nil
	}
}

// flush sends what waits. It takes the lock, as all that follows.
func (w *writer) flush() {
	w.mu.Lock()
	_ = w.send() // kept
	w.unlock()
}

// flushUnlessBusy is flush, or leaves it to whoever has the lock.
func (w *writer) flushUnlessBusy() {
	w.pending.Store(true)
	w.again()
}

// unlock gives the lock back, and sends what others have left meanwhile.
func (w *writer) unlock() {
	w.done()
	w.mu.Unlock()
	w.again()
}

func (w *writer) again() {
	for w.pending.Load() && w.mu.TryLock() {
		if w.pending.Swap(false) {
			_ = w.send() // kept
		}
		w.done()
		w.mu.Unlock()
	}
}

// interim sends an interim response, RFC 9113 section 8.1.
func (w *writer) interim(st *stream, status int, h http.Header) {
	w.mu.Lock()
	if w.alive(st) {
		w.begin(status)
		w.fields(h, "")
		w.headers(st, false)
		_ = w.send() // kept
	}
	w.unlock()
}

// alive reports whether something may be sent on a stream.
func (w *writer) alive(st *stream) bool {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	return !st.gone && w.err == nil
}

// begin begins a block of header fields. It needs the lock, as all that follows.
func (w *writer) begin(status int) {
	w.block.Reset()
	w.table.take(w.packed.SetMaxDynamicTableSize)
	w.field(":status", strconv.Itoa(status))
}

// field appends one. Its errors are those of a bytes.Buffer, which has none.
func (w *writer) field(name, value string) {
	_ = w.packed.WriteField(hpack.HeaderField{Name: name, Value: value})
}

// fields appends those that HTTP/2 has names for, RFC 9113 section 8.2; date, if there is none.
func (w *writer) fields(h http.Header, date string) {
	for key, values := range h {
		name := lower[key]
		if name == "" {
			if name = strings.ToLower(key); !validName(name) {
				continue
			}
		}
		switch name {
		case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
			continue
		case "date":
			date = ""
		}
		for _, v := range values {
			if httpguts.ValidHeaderFieldValue(v) {
				w.field(name, v)
			}
		}
	}
	if date != "" {
		w.field("date", date)
	}
}

// acknowledge appends the acknowledgements of SETTINGS. It is called before anything is appended that depends on them:
// until its SETTINGS are acknowledged a peer counts with the old ones, RFC 9113 section 6.5.3. It needs the
// connection's lock as well.
func (w *writer) acknowledge() {
	for t := &w.c.streams; t.acks > 0; t.acks-- {
		w.room()
		w.buf = appendSettingsAck(w.buf)
	}
}

// headers appends the block as frames, RFC 9113 sections 6.2 and 6.10. ends: it is the whole response.
func (w *writer) headers(st *stream, ends bool) {
	w.c.mu.Lock()
	w.acknowledge()
	if ends {
		w.c.streams.responded(st)
	}
	w.c.mu.Unlock()
	w.room()
	kind, block := http2.FrameHeaders, w.block.Bytes()
	for first := true; first || len(block) > 0; first = false {
		some := block[:min(len(block), frameSize)]
		block = block[len(some):]
		var flags http2.Flags
		if first && ends {
			flags |= http2.FlagHeadersEndStream
		}
		if len(block) == 0 {
			flags |= http2.FlagHeadersEndHeaders
		}
		w.buf = append(appendHead(w.buf, len(some), kind, flags, st.id), some...)
		kind = http2.FrameContinuation
	}
}

// data appends as much of p as the windows have room for and sends full buffers, RFC 9113 section 6.1. last: the stream
// ends with it. It gives what is left, when that has to wait.
func (w *writer) data(st *stream, p []byte, last bool) (left []byte, err error) {
	for len(p) > 0 || last {
		n, ends, err := w.reserve(st, len(p), last)
		if err != nil {
			return p, err
		}
		if n == 0 && !ends {
			return p, nil
		}
		w.room()
		var flags http2.Flags
		if ends {
			flags = http2.FlagDataEndStream
		}
		w.buf = append(appendHead(w.buf, n, http2.FrameData, flags, st.id), p[:n]...)
		p = p[n:]
		if n >= fair || ends {
			w.c.in.calm.useful(vainData)
		}
		if len(w.buf) >= written {
			if err := w.send(); err != nil {
				return p, err
			}
		}
		if ends {
			return nil, nil
		}
	}
	return nil, nil
}

// reserve takes as much of the windows as a frame of up to all bytes needs, RFC 9113 section 6.9. ends: it is the
// response's last one.
func (w *writer) reserve(st *stream, all int, last bool) (n int, ends bool, err error) {
	t := &w.c.streams
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if st.gone {
		return 0, false, errGone
	}
	w.acknowledge()
	n = int(max(min(int64(all), frameSize, st.window, t.window), 0))
	st.window -= int64(n)
	t.window -= int64(n)
	if ends = last && n == all; ends {
		t.responded(st)
	}
	return n, ends, nil
}

// waitForRoom waits until more of a stream may be sent, at most until a time.
func (st *stream) waitForRoom(until time.Time) {
	c := st.c
	c.mu.Lock()
	if st.room == nil {
		st.room = make(chan struct{}, 1)
	}
	room := st.room
	wait := !st.gone && (st.window <= 0 || c.streams.window <= 0)
	c.mu.Unlock()
	if wait {
		await(room, until)
	}
}
