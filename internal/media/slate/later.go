package slate

import (
	"errors"

	"millrace/internal/media/frame"
)

// ErrHeld ends a publication that has sent more than there is room for while nothing could be written.
var ErrHeld = errors.New("nothing can be recorded at the moment, and what has come does not fit into memory")

// maxLater bounds the bytes that wait for when something may be written again: a minute of 8 Mbit/s.
const maxLater = 64 << 20

// later is what has come while nothing may be written, in its order.
type later struct {
	jobs  []func()
	bytes int64
}

// held reports whether nothing may be written now. What came while nothing could be is written first. Called with the
// lock.
func (w *Writer) held() bool {
	if w.opt.Held == nil {
		return false
	}
	if w.opt.Held() {
		return true
	}
	if len(w.later.jobs) > 0 {
		l := w.later
		w.later = later{}
		w.opt.Room(-l.bytes)
		for _, do := range l.jobs {
			do()
		}
	}
	return false
}

// when does something now, or once something may be written. Called with the lock.
func (w *Writer) when(do func()) {
	if w.held() {
		w.later.jobs = append(w.later.jobs, do)
		return
	}
	do()
}

// forget drops what waits. Called with the lock.
func (w *Writer) forget() {
	if w.opt.Room != nil && w.later.bytes > 0 {
		w.opt.Room(-w.later.bytes)
	}
	w.later = later{}
}

// room takes room for something that waits, of so many bytes. Called with the lock.
func (w *Writer) room(bytes int) bool {
	const beside = 512 // what it takes beside them
	size := int64(bytes) + beside
	if w.later.bytes+size > maxLater || !w.opt.Room(size) {
		return false
	}
	w.later.bytes += size
	return true
}

// keep has a frame written once something may be. Called with the lock.
func (p *Publication) keep(fr frame.Frame) error {
	f, now := p.f, p.f.opt.Now()
	if !f.room(len(fr.Data)) {
		return ErrHeld
	}
	f.later.jobs = append(f.later.jobs, func() {
		if err := p.write(fr, now); err != nil && p.failed == nil {
			p.failed = err
		}
	})
	return nil
}
