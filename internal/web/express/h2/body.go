package h2

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/net/http2"
)

// body is that of a request. What has come of it is in memory, within the windows, until its handler reads it.
type body struct {
	st       *stream
	declared int64 // Content-Length; -1: none
	expects  bool  // 100 (Continue), before it sends the body; only the handler looks

	// The connection's lock guards the rest.
	data     bytes.Buffer
	came     int64
	err      error         // behind data: io.EOF, or what is wrong
	closed   bool          // nobody reads it any more
	news     chan struct{} // one token: something may have changed
	deadline time.Time     // zero: none
}

var (
	errGone     = errors.New("the stream was reset, or its connection has ended")
	errDeclared = errors.New("the body is not as long as Content-Length says")
)

func newBody(st *stream, declared int64, expects bool) *body {
	return &body{
		st: st, declared: declared, expects: expects, news: make(chan struct{}, 1),
		deadline: time.Now().Add(st.c.s.opt.ReadTimeout),
	}
}

func (b *body) wake() {
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// add takes what has come, of which nobody may want to know. It gives how much of it is kept. It needs the lock.
func (b *body) add(p []byte, last bool) (kept int, err error) {
	b.came += int64(len(p))
	if b.declared >= 0 && (b.came > b.declared || last && b.came < b.declared) { // RFC 9113 section 8.1.1
		return 0, errDeclared
	}
	if !b.closed {
		b.data.Write(p)
		kept = len(p)
	}
	if last && b.err == nil {
		b.err = io.EOF
	}
	b.wake()
	return kept, nil
}

// end says that no more comes. It gives how much of what has come is dropped. It needs the lock.
func (b *body) end() (dropped int) {
	dropped = b.data.Len()
	if b.err == nil || dropped > 0 {
		b.err = errGone
	}
	b.data = bytes.Buffer{}
	b.wake()
	return dropped
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.expects {
		b.expects = false
		b.st.c.out.interim(b.st, http.StatusContinue, nil)
	}
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, until, err := b.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		await(b.news, until)
	}
}

// take gives what is there, and otherwise until when to wait for more.
func (b *body) take(p []byte) (n int, until time.Time, err error) {
	c := b.st.c
	c.mu.Lock()
	n, until, err = b.takeLocked(p)
	asked := len(c.streams.control) > 0
	c.mu.Unlock()
	if asked {
		c.out.flushUnlessBusy()
	}
	return n, until, err
}

func (b *body) takeLocked(p []byte) (n int, until time.Time, err error) {
	switch {
	case b.closed:
		return 0, until, http.ErrBodyReadAfterClose
	case !b.deadline.IsZero() && !time.Now().Before(b.deadline):
		return 0, until, os.ErrDeadlineExceeded
	case b.data.Len() == 0:
		return 0, b.deadline, b.err
	}
	n, _ = b.data.Read(p)
	t := &b.st.c.streams
	t.giveBack(0, &t.inflow, n)
	if b.err == nil {
		t.giveBack(b.st.id, &b.st.inflow, n)
	}
	return n, until, nil
}

// Close implements io.Closer.
func (b *body) Close() error {
	c := b.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	b.drop()
	return nil
}

// drop gives up what has come and what still comes. It needs the lock.
func (b *body) drop() {
	b.closed = true
	t := &b.st.c.streams
	t.giveBack(0, &t.inflow, b.data.Len())
	b.data = bytes.Buffer{}
	b.wake()
}

// setDeadline is for http.ResponseController.
func (b *body) setDeadline(at time.Time) {
	c := b.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	b.deadline = at
	b.wake()
}

// await waits for a token, at most until a time; zero: for ever.
func await(news <-chan struct{}, until time.Time) {
	if until.IsZero() {
		<-news
		return
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-news:
	case <-timer.C:
	}
}

// data takes a frame of a body, RFC 9113 section 6.1.
func (c *conn) data(f *http2.DataFrame) error {
	if n := len(f.Data()); n >= fair {
		c.in.calm.useful(vainData)
	} else if n == 0 && !f.StreamEnded() {
		if err := c.in.calm.vain(1); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.streams
	size := int64(f.Length) // with padding
	if !t.inflow.take(size) {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	st := t.open[f.StreamID]
	if st == nil || st.whole {
		t.giveBack(0, &t.inflow, int(size))
		if st == nil {
			if err := t.closed(f.StreamID); err != nil {
				return err
			}
			if t.ignored(f.StreamID) {
				return c.in.calm.vain(1)
			}
		}
		return streamError(f.StreamID, http2.ErrCodeStreamClosed)
	}
	if !st.inflow.take(size) {
		t.giveBack(0, &t.inflow, int(size))
		return streamError(f.StreamID, http2.ErrCodeFlowControl)
	}
	kept, err := st.body.add(f.Data(), f.StreamEnded())
	t.giveBack(0, &t.inflow, int(size)-kept)
	if err != nil {
		return streamError(f.StreamID, http2.ErrCodeProtocol)
	}
	if st.whole = f.StreamEnded(); !st.whole {
		t.giveBack(st.id, &st.inflow, int(size)-len(f.Data()))
	}
	return nil
}
