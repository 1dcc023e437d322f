package ingest

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// SparseLog logs what strangers, or a broken encoder, can cause as often as they want: of each reason AtOnce lines, and
// then one for each time of Every at most. The first are logged at once; of what comes behind them within that time the
// newest is, at its end, with `not_logged`: how many more there were. Flush is called when nothing comes any more.
type SparseLog struct {
	Logger *slog.Logger
	Every  time.Duration // a second when 0
	AtOnce int           // 1 when 0

	mu    sync.Mutex
	waits map[string]*unlogged // by reason; one that was not given for Every is not in it
}

// maxReasons bounds what is kept of reasons that are told apart by who causes them.
const maxReasons = 512

// unlogged are the lines of one reason since its last one.
type unlogged struct {
	logged int // at once
	count  int
	newest func(*slog.Logger)
	timer  *time.Timer // the end of Every
}

// Log takes a line, and logs it now or within Every. Reasons must be few: none of a caller's own words.
func (s *SparseLog) Log(reason string, line func(*slog.Logger)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log(reason, line)
}

// LogFrom is Log of a reason and the addresses that a client has; with many clients at a time of the reason alone.
func (s *SparseLog) LogFrom(reason string, client netip.AddrPort, line func(*slog.Logger)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := reason + " from " + Origin(client).String()
	if s.waits[own] != nil || len(s.waits) < maxReasons {
		reason = own
	}
	s.log(reason, line)
}

// log needs the lock.
func (s *SparseLog) log(reason string, line func(*slog.Logger)) {
	w := s.waits[reason]
	if w == nil {
		if s.waits == nil {
			s.waits = map[string]*unlogged{}
		}
		w = &unlogged{}
		w.timer = time.AfterFunc(s.every(), func() { s.end(reason, w) })
		s.waits[reason] = w
	}
	if w.logged < max(s.AtOnce, 1) {
		w.logged++
		s.write(line, 0)
		return
	}
	w.count++
	w.newest = line
}

func (s *SparseLog) every() time.Duration {
	if s.Every > 0 {
		return s.Every
	}
	return time.Second
}

// end ends a time of Every of a reason.
func (s *SparseLog) end(reason string, w *unlogged) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.waits[reason] != w: // flushed
	case w.count == 0:
		delete(s.waits, reason)
	default:
		s.write(w.newest, w.count-1)
		w.count, w.newest = 0, nil
		w.timer.Reset(s.every())
	}
}

// Flush logs what was not logged yet.
func (s *SparseLog) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.waits {
		w.timer.Stop()
		if w.count > 0 {
			s.write(w.newest, w.count-1)
		}
	}
	s.waits = nil
}

func (s *SparseLog) write(line func(*slog.Logger), more int) {
	log := s.Logger
	if more > 0 {
		log = log.With("not_logged", more)
	}
	line(log)
}
