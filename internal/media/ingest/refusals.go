package ingest

import (
	"log/slog"
	"sync"
	"time"
)

// Refusals logs why callers are turned away, which strangers can cause as often as they want: of each reason one line
// a second at most. The first is logged at once; of what comes within a second the newest is, at its end, with
// `not_logged`: how many more there were. Flush is called when nobody is turned away any more.
type Refusals struct {
	Logger *slog.Logger

	mu    sync.Mutex
	waits map[string]*refusals // by reason; one that was not given for a second is not in it
}

// refusals are those of one reason since its last line.
type refusals struct {
	count  int
	newest func(*slog.Logger)
	timer  *time.Timer // the end of the second
}

// Log takes a refusal; line logs it, now or within a second. Reasons must be few: none of a caller's own words.
func (r *Refusals) Log(reason string, line func(*slog.Logger)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.waits[reason]; w != nil {
		w.count++
		w.newest = line
		return
	}
	r.write(line, 0)
	if r.waits == nil {
		r.waits = map[string]*refusals{}
	}
	w := &refusals{}
	w.timer = time.AfterFunc(time.Second, func() { r.second(reason, w) })
	r.waits[reason] = w
}

// second ends a second of a reason.
func (r *Refusals) second(reason string, w *refusals) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.waits[reason] != w: // flushed
	case w.count == 0:
		delete(r.waits, reason)
	default:
		r.write(w.newest, w.count-1)
		w.count, w.newest = 0, nil
		w.timer.Reset(time.Second)
	}
}

// Flush logs what was not logged yet.
func (r *Refusals) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.waits {
		w.timer.Stop()
		if w.count > 0 {
			r.write(w.newest, w.count-1)
		}
	}
	r.waits = nil
}

func (r *Refusals) write(line func(*slog.Logger), more int) {
	log := r.Logger
	if more > 0 {
		log = log.With("not_logged", more)
	}
	line(log)
}
