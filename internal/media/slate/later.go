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
func (f *Writer) held() bool {
	if f.opt.Held == nil {
		return false
	}
	if f.opt.Held() {
		return true
	}
	if len(f.later.jobs) > 0 {
		l := f.later
		f.later = later{}
		f.opt.Room(-l.bytes)
		for _, do := range l.jobs {
			do()
		}
	}
	return false
}

// when does something now, or once something may be written. Called with the lock.
func (f *Writer) when(do func()) {
	if f.held() {
		f.later.jobs = append(f.later.jobs, do)
		return
	}
	do()
}

// forget drops what waits. Called with the lock.
func (f *Writer) forget() {
	if f.opt.Room != nil && f.later.bytes > 0 {
		f.opt.Room(-f.later.bytes)
	}
	f.later = later{}
}

// room takes room for something that waits, of so many bytes. Called with the lock.
func (f *Writer) room(bytes int) bool {
	const beside = 512 // what it takes beside them
	size := int64(bytes) + beside
	if f.later.bytes+size > maxLater || !f.opt.Room(size) {
		return false
	}
	f.later.bytes += size
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
