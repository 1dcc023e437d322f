package window

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

// Store is where sealed media goes; the blob store fits it.
type Store interface {
	// Put stores a whole object or nothing.
	Put(ctx context.Context, key string, r io.Reader) error
	// Link is Put of a file, which stays where it is and is not written to any more.
	Link(ctx context.Context, key string, f *os.File) error
}

// Recorder takes the record of what is stored. Entries come in order, each exactly once per Edge unless Record failed,
// then again.
type Recorder interface {
	Record(ctx context.Context, entries []timeline.Entry) error
}

// row is one sealed media sequence number.
type row struct {
	index   int // into rendition.segs; -1: it is cues alone
	entries []timeline.Entry
	objects []object
	size    int64
}

type object struct {
	key   string
	data  []byte
	file  *journal.Media // has what stands in front of data; nil: data are all
	head  int64          // bytes of that; all without data
	media bool           // not an init segment
}

// seal queues every segment that is now whole in all renditions. Called with the lock.
func (e *Edge) seal() {
	for e.wholeAt(e.sealed) {
		if e.target == 0 {
			e.target = e.leastTarget(e.sealed)
		}
		r := e.row(e.sealed)
		if e.held+r.size > e.opt.MaxHeld {
			e.lose(&r)
		}
		e.queue = append(e.queue, r)
		e.held += r.size
		e.sealed++
	}
	trimAll(e)
	e.signal()
}

// leastTarget is the target duration when nobody said one: the broadcast ended with its first segment.
func (e *Edge) leastTarget(i int) int {
	longest := time.Second
	for _, l := range e.renditions {
		longest = max(longest, l.duration(l.segs[i].dur))
	}
	return int(longest.Round(time.Second) / time.Second)
}

func (e *Edge) wholeAt(i int) bool {
	for _, l := range e.renditions {
		if i >= len(l.segs) || !l.segs[i].done {
			return false
		}
	}
	return len(e.renditions) > 0
}

// row gathers what storage and record need of segment i, with the declarations that come before it for the first time.
func (e *Edge) row(i int) row {
	r := row{index: i}
	r.entries = e.texts.pending()
	seg := timeline.Segment{MSN: e.first + int64(i), Generation: int64(e.renditions[0].segs[i].generation)}
	if i == 0 && e.target > 0 {
		r.entries = append(r.entries, timeline.Entry{Target: e.target})
	}
	for _, l := range e.renditions {
		s := &l.segs[i]
		for k := range l.inits {
			in := &l.inits[k]
			if in.stored || k > int(s.init) {
				continue
			}
			if k == 0 {
				rendition := l.RenditionInfo
				r.entries = append(r.entries, timeline.Entry{Rendition: &rendition})
			}
			meta := in.Init
			r.entries = append(r.entries, timeline.Entry{Init: &meta})
			r.objects = append(r.objects, object{key: in.Object, data: in.data})
			in.stored = true // queued: rows are stored in order
		}
		if seg.Start == 0 {
			seg.Start = s.start
		}
		seg.Discontinuity, seg.Slate = seg.Discontinuity || s.disc, seg.Slate || s.slate
		c := timeline.Chunk{
			Rendition: l.ID, Init: int(s.init), Time: s.time, Duration: s.dur, Size: s.size,
			Independent: s.independent, Gap: s.gap,
		}
		if s.start != 0 {
			c.Apart = s.start - seg.Start
		}
		if !s.gap {
			c.Object = e.key(l.ID, seg.MSN)
			o := object{key: c.Object, data: s.hot.buf, head: s.hot.from, media: true}
			if o.head > 0 {
				o.file = s.hot.media
			}
			if s.written() {
				o.data, o.file = nil, s.hot.media
			}
			r.objects = append(r.objects, o)
			r.size += s.size
		}
		seg.Chunks = append(seg.Chunks, c)
	}
	r.entries = append(r.entries, timeline.Entry{Segment: &seg})
	return r
}

// lose turns a row into a gap: storage has been away for longer than memory lasts. What players were offered a moment
// ago stays until it is dropped from memory like any other segment; then the playlists have a gap there too.
func (e *Edge) lose(r *row) {
	seg := r.entries[len(r.entries)-1].Segment
	for i := range seg.Chunks {
		c := &seg.Chunks[i]
		c.Gap, c.Object, c.Size, c.Independent = true, "", 0, false
		l := e.rendition(c.Rendition)
		l.segs[r.index].lost = !l.segs[r.index].gap
		e.derived.lose(l, r.index)
	}
	e.losing = append(e.losing, r.index)
	e.wakeStored()
	r.objects = slices.DeleteFunc(r.objects, func(o object) bool { return o.media })
	r.size = 0
	e.opt.Logger.Error("segment lost: storage does not keep up", "media", e.opt.Media, "media_sequence", seg.MSN,
		"held_bytes", e.held)
}

func (b *backlog) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Run stores what is sealed, in order, until the edge is closed and everything is stored, or ctx ends; what was
// published of derived renditions is stored by those who make them, and waited for. Storage that fails is tried again
// with growing pauses for as long as the edge lives.
func (e *Edge) Run(ctx context.Context) error {
	journals := slices.DeleteFunc([]*journal.Journal{e.opt.Journal, e.opt.DerivedJournal},
		func(j *journal.Journal) bool { return j == nil })
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var written sync.WaitGroup
	for _, j := range journals {
		written.Go(func() {
			err := fault.Guard(func() error { return j.Run(running) }) // its end is ours, but for a panic
			if trace := fault.Trace(err); trace != "" && e.opt.Broken != nil {
				e.opt.Broken(fmt.Errorf("write journal: %w%s", err, trace))
			}
		})
	}
	defer written.Wait()
	defer stop()
	if err := e.store(ctx); err != nil {
		return err
	}
	for _, j := range journals {
		j.Close()
	}
	return nil
}

func (e *Edge) store(ctx context.Context) error {
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
		return nil, e.ended && e.derived.kept()
	}
	return &e.queue[0], false
}

func (e *Edge) storeRow(ctx context.Context, r *row) error {
	for _, o := range r.objects {
		if err := e.retry(ctx, "store "+o.key, func() error { return e.put(ctx, &o) }); err != nil {
			return err
		}
	}
	return e.retry(ctx, "record segment", func() error { return e.opt.Recorder.Record(ctx, r.entries) })
}

func (e *Edge) put(ctx context.Context, o *object) error {
	if o.file == nil {
		return e.opt.Store.Put(ctx, o.key, bytes.NewReader(o.data))
	}
	f, err := o.file.Hold()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	if o.data != nil {
		head := io.NewSectionReader(f.OS(), 0, o.head)
		return e.opt.Store.Put(ctx, o.key, io.MultiReader(head, bytes.NewReader(o.data)))
	}
	return e.opt.Store.Link(ctx, o.key, f.OS())
}

func (e *Edge) retry(ctx context.Context, what string, do func() error) error {
	const longest = 5 * time.Second
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, longest) {
		err := do()
		if err == nil {
			return nil
		}
		e.opt.Logger.WarnContext(ctx, "storage failed, trying again", "media", e.opt.Media, "doing", what, "error", err,
			"retry_in", pause)
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
	for _, l := range e.renditions {
		if r.index >= 0 && r.index < len(l.segs) {
			l.segs[r.index].stored = true
		}
	}
	e.wakeStored()
	if e.opt.Journal != nil && r.index >= 0 {
		e.opt.Journal.Stored(e.first + int64(r.index))
	}
	e.queue[0] = row{} // r is in there
	e.queue = e.queue[1:]
	trimAll(e)
	e.forgetParts()
}

// Yielded reports whether the record has ended for another writer to go on with it (Yield).
func Yielded(e *Edge) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.yielded
}

// Unstored is how much media is sealed and not stored: what is lost should nobody store it any more.
func Unstored(e *Edge) (long time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.queue {
		var segment time.Duration
		for _, l := range e.renditions {
			if r.index >= 0 && r.index < len(l.segs) {
				segment = max(segment, l.duration(l.segs[r.index].dur))
			}
		}
		long += segment
	}
	return long
}

// forgetParts has the journal forget the segments whose parts nobody may ask for any more. Called with the lock.
func (e *Edge) forgetParts() {
	until := len(e.renditions[0].segs)
	for _, l := range e.renditions {
		until = min(until, l.cold)
	}
	for ; e.opt.Journal != nil && e.parted < until; e.parted++ {
		e.opt.Journal.Forget(e.first + int64(e.parted))
	}
}

// Stored waits until a segment of a rendition is stored and recorded. ErrUnknown: it is not, and will not be.
func (e *Edge) Stored(ctx context.Context, rendition string, msn int64) error {
	for {
		wait, err := e.storedSignal(rendition, int(msn-e.first))
		if wait == nil || err != nil {
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// storedSignal is what to wait on for a segment to be stored; nil: it is.
func (e *Edge) storedSignal(rendition string, i int) (chan struct{}, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(rendition)
	if l == nil || i < 0 || i >= len(l.segs) || l.segs[i].gap || l.segs[i].lost {
		return nil, ErrUnknown
	}
	if l.segs[i].stored {
		return nil, nil
	}
	if e.storedChange == nil {
		e.storedChange = make(chan struct{})
	}
	return e.storedChange, nil
}

// wakeStored wakes those that wait for a segment to be stored to look again. Called with the lock.
func (b *backlog) wakeStored() {
	if b.storedChange != nil {
		close(b.storedChange)
		b.storedChange = nil
	}
}

// trimAll lets go of what is behind the edge, and has the journal delete the media of segments that are lost once
// nobody reads it. Called with the lock.
func trimAll(e *Edge) {
	for _, l := range e.renditions {
		e.trim(l)
	}
	e.losing = slices.DeleteFunc(e.losing, func(i int) bool {
		for _, l := range e.renditions {
			if i < len(l.segs) && l.segs[i].hot != nil {
				return false
			}
		}
		if e.opt.Journal != nil {
			journal.Lose(e.opt.Journal, e.first+int64(i))
		}
		return true
	})
}

// trim lets go of the bytes of stored segments behind the newest whole ones, and of what is known of their parts once
// no playlist has listed these for as long as the longest playlist is, as section 6.2.2 wants it of segments: a player
// that is slow still finds what it was offered. Files that wait for storage are closed meanwhile. Called with the lock.
func (e *Edge) trim(l *liveRendition) {
	whole := len(l.segs)
	if l.open() != nil {
		whole--
	}
	keep := whole - e.opt.Mode.InMemory
	// Parts are listed for three target durations.
	asked := l.within(l.cold, e.leastListed()+time.Duration(4*e.target)*time.Second)
	for i := l.cold; i < keep; i++ {
		s := &l.segs[i]
		if s.hot == nil {
			continue
		}
		e.putDown(s.hot)
		switch {
		case s.lost:
			s.gap, s.size, s.hot = true, 0, nil
			e.derived.gap(l, i)
			e.revise()
		case s.stored:
			s.hot.buf, s.hot.media = nil, nil
			if i < asked {
				s.hot = nil
			}
		case s.written():
			s.hot.buf = nil
		}
	}
	for l.cold < keep && l.segs[l.cold].hot == nil {
		l.cold++
	}
}

// putDown lets the journal close a segment's file, which may take its time. Called with the lock.
func (e *Edge) putDown(h *hot) {
	if h.media != nil && !h.down {
		h.down = true
		e.opt.Journal.PutDown(h.media)
	}
}

// Release closes the files that are open: nobody watches any more, and nothing comes.
func (e *Edge) Release() {
	var all []*journal.Media
	e.mu.Lock()
	for _, l := range e.renditions {
		for i := l.cold; i < len(l.segs); i++ {
			if h := l.segs[i].hot; h != nil && h.media != nil {
				all = append(all, h.media)
			}
		}
	}
	e.mu.Unlock()
	for _, m := range all {
		m.PutDown()
	}
}
