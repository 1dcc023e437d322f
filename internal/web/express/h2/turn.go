package h2

import (
	"sync"
	"time"
)

// lead runs a handler on the goroutine that reads. It reports whether that is still the one that reads.
func (st *stream) lead(handle func()) (still bool) {
	c := st.c
	st.leads.Store(true)
	c.in.leader.Store(st)
	c.in.watch.look()
	handle()
	c.in.leader.CompareAndSwap(st, nil)
	return st.leads.CompareAndSwap(true, false)
}

// pass has another goroutine read on, if this stream's handler runs on the one that does. Anybody may call it.
func (st *stream) pass() {
	if st.leads.Load() && st.leads.CompareAndSwap(true, false) {
		c := st.c
		c.frameDone()
		c.work.Go(c.readOn)
	}
}

// watch passes the reading on when a handler takes longer than a moment: who reads a disk or waits for a lock does not
// say so. Its timer runs only while there is something to do.
type watch struct {
	reader *reader
	moment time.Duration

	mu    sync.Mutex
	on    bool
	timer *time.Timer
	seen  *stream // whose handler was at work a moment ago
}

// look begins to look.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.on:
		return
	case w.timer == nil:
		w.timer = time.AfterFunc(w.moment, w.tick)
	default:
		w.timer.Reset(w.moment)
	}
	w.on = true
}

// tick is what the timer does.
func (w *watch) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.reader.leader.Load()
	if now == nil {
		w.on, w.seen = false, nil
		return
	}
	if now == w.seen {
		now.pass()
		now = nil
	}
	w.seen = now
	w.timer.Reset(w.moment)
}
