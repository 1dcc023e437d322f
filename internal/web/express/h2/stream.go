package h2

import (
	"slices"
	"sync/atomic"

	"golang.org/x/net/http2"
)

// stream is a request and its response, RFC 9113 section 5.1. Its connection's lock guards what is above leads.
type stream struct {
	id     uint32
	c      *conn
	window int64         // how much of DATA may be sent on it
	room   chan struct{} // somebody waits for window; nil: nobody ever has
	inflow inflow
	body   *body // nil: the request had ended with its header fields
	whole  bool  // END_STREAM has come
	closed bool  // both sides have ended it
	gone   bool  // it is closed or was reset, or the connection has ended: nothing more may be sent

	ctx   requestContext
	leads atomic.Bool // its handler runs on the goroutine that reads
}

// wake lets somebody who waits look again. It needs the connection's lock.
func (st *stream) wake() {
	if st.room != nil {
		select {
		case st.room <- struct{}{}:
		default:
		}
	}
}

// table is the streams of a connection and their windows. The connection's lock guards it.
type table struct {
	open    map[uint32]*stream // RFC 9113 section 5.1: open and half-closed
	most    int
	last    uint32 // the highest that its peer has opened
	running int    // handlers that have not responded, also of streams that were reset
	leaving bool   // no more streams: GOAWAY was sent or has come

	window  int64 // how much of DATA may be sent
	initial int64 // what a new stream's window is
	inflow  inflow

	own     [16]uint32 // the streams that were reset here last: what has been sent to them is still to come
	resets  int
	control []byte // frames to be sent, behind what waits already
	acks    int    // of SETTINGS, to be sent before anything that goes by them
}

func (t *table) init(most int) {
	*t = table{
		open: map[uint32]*stream{}, most: most, window: initialWindow, initial: initialWindow,
		inflow: inflow{left: received},
	}
}

// quiet reports whether the connection has nothing left to do.
func (t *table) quiet() bool { return t.leaving && len(t.open) == 0 }

// leave allows no more streams, RFC 9113 section 6.8.
func (t *table) leave() {
	if !t.leaving {
		t.leaving = true
		t.control = appendGoAway(t.control, t.last, http2.ErrCodeNo)
	}
}

// setInitial changes the windows of all streams, RFC 9113 section 6.9.2. It is false when one becomes too large.
func (t *table) setInitial(n int64) bool {
	more := n - t.initial
	t.initial = n
	for _, st := range t.open {
		if st.window += more; st.window > largestWindow {
			return false
		}
		st.wake()
	}
	return true
}

// grow lets more be sent on all streams. It is false when that is too much.
func (t *table) grow(n int64) bool {
	if t.window += n; t.window > largestWindow {
		return false
	}
	for _, st := range t.open {
		st.wake()
	}
	return true
}

// closed says what is wrong with a frame for a stream that is not open: nothing, when it was before.
func (t *table) closed(id uint32) error {
	if (id > t.last || id%2 == 0) && !t.leaving { // idle
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil
}

// ignored reports whether what comes for a stream is ignored: this side has reset it lately (RFC 9113 section 5.1), or
// has said that it opens no more (section 6.8).
func (t *table) ignored(id uint32) bool {
	return slices.Contains(t.own[:], id) || t.leaving && id > t.last
}

// reset resets a stream, whether it is open or not.
func (t *table) reset(id uint32, code http2.ErrCode) {
	t.control = appendReset(t.control, id, code)
	t.own[t.resets%len(t.own)] = id
	t.resets++
	if st := t.open[id]; st != nil {
		t.broken(st)
	}
}

// broken takes out a stream that was reset, and ends what waits for it.
func (t *table) broken(st *stream) {
	st.gone = true
	st.wake()
	st.ctx.cancel()
	t.close(st)
}

// responded closes a stream whose response ends with what is sent next, if its request has ended. Its peer may take it
// as closed and open another one in its place before the handler has returned, RFC 9113 section 5.1.
func (t *table) responded(st *stream) {
	if st.whole && !st.gone {
		st.closed, st.gone = true, true
		t.running--
		delete(t.open, st.id)
	}
}

// close takes a stream out that has ended, and what was not read of its request.
func (t *table) close(st *stream) {
	delete(t.open, st.id)
	if st.body != nil {
		t.giveBack(0, &t.inflow, st.body.end())
	}
}

// breakAll takes all streams out: the connection has ended.
func (t *table) breakAll() {
	t.leaving = true
	for _, st := range t.open {
		t.broken(st)
	}
}

// giveBack lets a peer send n bytes more on a stream, or on the connection (0).
func (t *table) giveBack(id uint32, in *inflow, n int) {
	if more := in.give(int64(n)); more > 0 {
		t.control = appendWindowUpdate(t.control, id, uint32(more))
	}
}

// inflow is what a peer may send, RFC 9113 section 6.9.1.
type inflow struct {
	left int64 // of what it was told
	back int64 // what it may send beside that, and was not told yet
}

// take counts n bytes that have come. It is false when these are too many.
func (in *inflow) take(n int64) bool {
	in.left -= n
	return in.left >= 0
}

// give counts n bytes that are no longer in memory, and gives how much more the peer is to be told of now.
func (in *inflow) give(n int64) (more int64) {
	if in.back += n; in.back < received/8 {
		return 0
	}
	more, in.back = in.back, 0
	in.left += more
	return more
}
