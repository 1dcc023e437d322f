package window

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"millrace/internal/media/timeline"
)

// Store is where sealed media goes; the blob store fits it.
type Store interface {
	// Put stores a whole object or nothing.
	Put(ctx context.Context, key string, r io.Reader) error
}

// Recorder takes the record of what is stored. Entries come in order, each exactly once per Edge unless Record failed, then again.
type Recorder interface {
	Record(ctx context.Context, entries []timeline.Entry) error
}

// row is one sealed media sequence number.
type row struct {
	index   int // into lane.segs
	entries []timeline.Entry
	objects []object
	size    int64
}

type object struct {
	key  string
	data []byte
}

// maxHeld bounds the bytes that wait for a storage that does not answer; behind it segments are lost, counted and logged.
const maxHeld = 256 << 20

// seal queues every segment that is now whole in all renditions. Called with the lock.
func (e *Edge) seal() {
	for e.wholeAt(e.sealed) {
		r := e.row(e.sealed)
		if e.held+r.size > maxHeld {
			e.lose(&r)
		}
		e.queue = append(e.queue, r)
		e.held += r.size
		e.sealed++
	}
	e.signal()
}

func (e *Edge) wholeAt(i int) bool {
	for _, l := range e.lanes {
		if i >= len(l.segs) || !l.segs[i].done {
			return false
		}
	}
	return len(e.lanes) > 0
}

// row gathers what storage and record need of segment i, with the declarations that come before it for the first time.
func (e *Edge) row(i int) row {
	r := row{index: i}
	seg := timeline.Segment{MSN: e.first + int64(i)}
	if i == 0 && e.target > 0 {
		r.entries = append(r.entries, timeline.Entry{Target: e.target})
	}
	for _, l := range e.lanes {
		s := l.segs[i]
		for k := range l.inits {
			in := &l.inits[k]
			if in.stored || k > s.init {
				continue
			}
			if k == 0 {
				rendition := l.Rendition
				r.entries = append(r.entries, timeline.Entry{Rendition: &rendition})
			}
			meta := in.Init
			r.entries = append(r.entries, timeline.Entry{Init: &meta})
			r.objects = append(r.objects, object{in.Object, in.data})
			in.stored = true // queued: rows are stored in order
		}
		if !s.start.IsZero() && seg.Start == 0 {
			seg.Start = s.start.UnixMilli()
		}
		seg.Discontinuity = seg.Discontinuity || s.disc
		c := timeline.Chunk{Rendition: l.ID, Init: s.init, Time: s.time, Duration: s.dur, Size: s.size, Independent: s.independent, Gap: s.gap}
		if !s.gap {
			c.Object = e.key(l.ID, s.msn)
			r.objects = append(r.objects, object{c.Object, s.buf})
			r.size += s.size
		}
		seg.Chunks = append(seg.Chunks, c)
	}
	r.entries = append(r.entries, timeline.Entry{Segment: &seg})
	return r
}

// lose turns a row into a gap: storage has been away for longer than memory lasts.
func (e *Edge) lose(r *row) {
	seg := r.entries[len(r.entries)-1].Segment
	for i := range seg.Chunks {
		seg.Chunks[i].Gap, seg.Chunks[i].Object, seg.Chunks[i].Size = true, "", 0
	}
	kept := r.objects[:0]
	for _, o := range r.objects {
		if len(o.key) > 4 && o.key[len(o.key)-4:] == ".mp4" {
			kept = append(kept, o)
		}
	}
	r.objects, r.size = kept, 0
	e.opt.Logger.Error("segment lost: storage does not keep up", "media", e.opt.Media, "msn", seg.MSN, "held_bytes", e.held)
}

func (e *Edge) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Run stores what is sealed, in order, until the edge is closed and everything is stored, or ctx ends. Storage that fails is tried
// again with growing pauses for as long as the edge lives.
func (e *Edge) Run(ctx context.Context) error {
	for {
		r, ended := e.head()
		if r == nil {
			if ended {
				return nil
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-e.wake:
			}
			continue
		}
		if err := e.storeRow(ctx, r); err != nil {
			return err
		}
		e.stored(r)
	}
}

func (e *Edge) head() (*row, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return nil, e.ended
	}
	return &e.queue[0], false
}

func (e *Edge) storeRow(ctx context.Context, r *row) error {
	for _, o := range r.objects {
		if err := e.retry(ctx, "store "+o.key, func() error { return e.opt.Store.Put(ctx, o.key, bytes.NewReader(o.data)) }); err != nil {
			return err
		}
	}
	return e.retry(ctx, "record segment", func() error { return e.opt.Recorder.Record(ctx, r.entries) })
}

func (e *Edge) retry(ctx context.Context, what string, do func() error) error {
	const longest = 5 * time.Second
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, longest) {
		err := do()
		if err == nil {
			return nil
		}
		e.opt.Logger.Warn("storage failed, trying again", "media", e.opt.Media, "what", what, "error", err, slog.Duration("pause", pause))
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case <-t.C:
		}
	}
}

// stored lets go of memory: all but the newest whole segments are read from storage from now on.
func (e *Edge) stored(r *row) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held -= r.size
	for _, l := range e.lanes {
		if r.index < len(l.segs) {
			l.segs[r.index].stored = true
		}
	}
	e.queue[0] = row{}
	e.queue = e.queue[1:]
	e.trim()
}

func (e *Edge) trim() {
	for _, l := range e.lanes {
		n := len(l.segs)
		if l.open() != nil {
			n--
		}
		for i := n - 1 - e.opt.Mode.InMemory; i >= 0; i-- {
			s := l.segs[i]
			if s.buf == nil && s.parts == nil {
				break
			}
			if s.stored {
				s.buf = nil
			}
			if i < n-16 { // far behind every listed part
				s.parts = nil
			}
		}
	}
}
