// Package journal keeps the parts of segments on this machine's disk from the moment they are published, so that a
// killed process loses at most what it was writing. Each segment of a rendition is a file of its own (Media), to which
// parts are appended: storage takes the file when it is complete, and viewers are served from it until then. An index
// has a small record for each part (its length and checksum), init segment, start and end, and of what became of the
// segment; old records are removed from time to time. It must never know playlists, storage or who watches.
//
// A disk that is slow or hangs never delays the stream for long: a writer waits for 50 ms at most, and after that none
// waits until everything has been written. Unwritten data is meanwhile kept in the machine's shared memory, so that it
// survives the process too (late.go). What does not fit into a bounded backlog is not journalled, and counted. Files
// are not synced: they survive the process, not a power failure. What a full disk does not accept is lost with the
// process. How the segments were listed is kept in shared memory, too (told.go). It starts no goroutine: Run does the
// writing and is called by the owner.
package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Options configures a Journal.
type Options struct {
	Dir        string        // a folder of its own; it is made when needed and removed by Close
	Patience   time.Duration // how long an append waits for the disk at most; 50 ms when 0
	MaxBacklog int64         // bytes that may wait for the disk; 16 MiB when 0
	Mark       string        // file in memory (Memory) of what players were told, see mark and told; empty: none
	Tap        Tap           // is given all records; nil: nobody is
	Copied     Copied        // what another machine has copied of the journal, which is not in Dir
	Logger     *slog.Logger
}

// Journal is the journal of one broadcast.
type Journal struct {
	opt Options

	mu      sync.Mutex
	queue   []op
	doing   *op      // that Run has taken from the queue
	pending [][]byte // records that were done and are written with the next one
	backlog int64
	slow    bool           // a writer waited in vain; none waits until the backlog is written
	broken  map[int64]bool // segments to which nothing more is appended: something did not fit or could not be written
	closed  bool
	stats   Stats
	wake    chan struct{} // one token: the queue has grown or the journal is closed

	timer *time.Timer // of the one who appends
	mark  mark
	told  *told

	files files // Run's own
}

// Stats counts what went wrong.
type Stats struct {
	Late    int64 // records that were published before they were written
	Missing int64 // records that were not written at all
}

type op struct {
	msn     int64
	stored  bool
	forget  bool
	removal bool   // of everything
	note    []byte // a record
	late    bool   // it is soon enough to write the record with the next one
	part    *Media // to which data are appended
	about   Part
	number  int   // of the part in the segment
	at      int64 // where in the file it begins
	down    bool  // to be closed
	lost    bool  // its media is
	data    []byte
	done    chan struct{} // nil: no writer waits
}

func (o *op) size() int64 { return int64(len(o.note) + len(o.data) + 64) }

// New returns a Journal in o.Dir. What an earlier process left there is read by Left.
func New(o Options) *Journal {
	if o.Patience <= 0 {
		o.Patience = 50 * time.Millisecond // a busy machine takes some to get to it
	}
	if o.MaxBacklog <= 0 {
		o.MaxBacklog = 16 << 20
	}
	return &Journal{
		opt: o, broken: map[int64]bool{}, wake: make(chan struct{}, 1), mark: mark{name: o.Mark}, told: newTold(o.Mark),
		files: newFiles(o.Dir, o.Logger),
	}
}

// Published notes that players are told of a segment from now on, whether the disk has it or not. It waits for no disk,
// and is for the one goroutine that appends.
func (j *Journal) Published(msn int64) {
	if err := j.mark.set(msn); err != nil {
		j.opt.Logger.Warn("after a crash media sequence numbers are left out", "error", err)
	}
}

// Marked is the first media sequence number that no player was told of in an earlier process; false when that is not
// known. Where it was another machine's process it is as far as that one was copied.
func (j *Journal) Marked() (next int64, ok bool) {
	if next, ok = j.mark.read(); !ok && j.files.copied > 0 {
		return j.files.copied, true
	}
	return next, ok
}

// Left yields what an earlier process left, in order of media sequence numbers, without the bytes (Segment.Load). It is
// called before anything is appended.
func (j *Journal) Left(yield func(*Segment) bool) {
	all, err := j.files.index.read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.opt.Logger.Error("part journal can not be read", "error", err)
	} else {
		all = j.catchUp(all)
	}
	all = j.files.inherit(all, &j.opt.Copied)
	all = j.told.read(all)
	j.files.know(all)
	for _, s := range all {
		if !yield(s) {
			return
		}
	}
}

// Note writes a record of a segment to the index, with the bytes of an init segment. It does not wait.
func (j *Journal) Note(msn int64, r Record, init []byte) {
	// That something begins is of no use before there is a part of it, and comes with that.
	j.append(op{msn: msn, note: j.noted(msn, &r, init), late: r.End == "" && r.Cut == "" && r.Text == nil})
}

// noted is a record of what players are told from now on. The machine's memory has it at once.
func (j *Journal) noted(msn int64, r *Record, init []byte) []byte {
	note := appendNote(nil, msn, r, init)
	if r.Text != nil {
		return note
	}
	if err := j.told.add(msn, note); err != nil {
		j.opt.Logger.Debug("after a crash a segment may be listed otherwise", "media_sequence", msn, "error", err)
	}
	return note
}

// End writes that a rendition's segment is whole. It waits as Part does.
func (j *Journal) End(msn int64, r Record) {
	defer awaitCopy(j.opt.Tap, j.opt.Patience, time.Now())
	j.await(op{msn: msn, note: j.noted(msn, &r, nil), done: make(chan struct{})})
}

// Part appends a part to a segment's file; data must not change later. It returns when the part is with the operating
// system, or when patience is at its end. One goroutine at a time may append. kept reports whether the part outlives
// the process: the file has it, or the machine's memory has until the file does.
func (j *Journal) Part(m *Media, data []byte, ticks int64, independent bool) (kept bool) {
	defer awaitCopy(j.opt.Tap, j.opt.Patience, time.Now())
	return j.await(op{
		msn: m.msn, part: m, about: Part{Ticks: ticks, Independent: independent}, data: data, done: make(chan struct{}),
	})
}

func (j *Journal) await(o op) (kept bool) {
	wait, kept := j.append(o)
	if !wait {
		return kept
	}
	if j.timer == nil {
		j.timer = time.NewTimer(j.opt.Patience)
	} else {
		j.timer.Reset(j.opt.Patience)
	}
	select {
	case <-o.done:
		j.timer.Stop()
		j.mu.Lock()
		defer j.mu.Unlock()
		return !j.broken[o.msn]
	case <-j.timer.C:
		return j.late(o.msn)
	}
}

// append queues an operation, and reports whether to wait for it; kept, if not, whether the machine's memory has it.
func (j *Journal) append(o op) (wait, kept bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return false, false
	}
	if m := o.part; m != nil {
		o.number, o.at = m.parts, m.next
		m.parts, m.next = m.parts+1, m.next+int64(len(o.data))
	}
	tap(j.opt.Tap, &o) // another machine may have what this one's disk does not take
	if j.broken[o.msn] || j.backlog+o.size() > j.opt.MaxBacklog {
		j.miss(o.msn)
		return false, false
	}
	if j.slow {
		o.done = nil
	}
	kept = j.push(o)
	return o.done != nil, kept
}

// miss notes that a segment lacks a record. Called with the lock.
func (j *Journal) miss(msn int64) {
	if j.closed {
		return
	}
	j.stats.Missing++
	if !j.broken[msn] {
		j.broken[msn] = true
		j.opt.Logger.Warn("part journal does not keep up: a segment is not journalled to its end",
			"media_sequence", msn)
	}
}

// late notes that a writer waited in vain for what it has appended to a segment, and reports whether that is kept.
func (j *Journal) late(msn int64) (kept bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stats.Late++
	if kept = !j.broken[msn]; !j.slow && (len(j.queue) > 0 || j.doing != nil) {
		j.slow = true // no alarm: a busy machine does it now and then
		j.opt.Logger.Debug("part journal is slow: parts are published before they are written")
		kept = j.keepAll()
	}
	return kept
}

// push queues an operation, and reports whether the machine's memory has it, where the disk is late.
func (j *Journal) push(o op) (kept bool) {
	j.queue = append(j.queue, o)
	j.backlog += o.size()
	if j.slow {
		kept = j.keep(&o)
	}
	if o.late {
		return kept
	}
	select {
	case j.wake <- struct{}{}:
	default:
	}
	return kept
}

// Stored deletes a segment's files: it is recorded. The lengths of its parts are kept until Forget.
func (j *Journal) Stored(msn int64) {
	j.order(op{msn: msn, stored: true})
	j.told.forget(msn)
}

// Lose deletes a segment's media, which nobody will store: the disk is not to fill while storage is away. How long it
// was is known until Forget, also to a process that goes on.
func Lose(j *Journal, msn int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closed {
		j.push(op{msn: msn, lost: true, late: true})
	}
}

// Forget deletes all that there is of a segment.
func (j *Journal) Forget(msn int64) {
	j.order(op{msn: msn, forget: true})
	j.told.forget(msn)
}

// PutDown closes the file of a segment, when Run gets to it.
func (j *Journal) PutDown(m *Media) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closed {
		j.push(op{part: m, down: true, late: true})
	}
}

// Close tells that everything is recorded: Run deletes what is left, and the folder, and ends.
func (j *Journal) Close() {
	j.order(op{removal: true})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
}

func (j *Journal) order(o op) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	delete(j.broken, o.msn)
	tap(j.opt.Tap, &o)
	j.push(o)
}

// Stats tells what went wrong so far.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats
}

// Run writes until the journal is closed or ctx ends; what was appended before is written first.
func (j *Journal) Run(ctx context.Context) error {
	defer j.files.index.close()
	defer j.mark.close(false)
	defer j.told.close(false)
	for {
		ended := ctx.Err() // asked before the queue: what was ordered before the end is done
		batch, closed := j.dequeue()
		for i := range batch {
			j.do(&batch[i])
		}
		if len(batch) > 0 {
			continue
		}
		if closed {
			return nil
		}
		if ended != nil {
			return context.Cause(ctx)
		}
		select {
		case <-ctx.Done():
		case <-j.wake:
		}
	}
}

// dequeue returns the next operation: one, so that the backlog counts what is not written.
func (j *Journal) dequeue() (batch []op, closed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) == 0 {
		if j.slow {
			j.inTime()
		}
		j.slow, j.queue = false, nil
		return nil, j.closed
	}
	batch = j.queue[:1:1]
	j.queue, j.doing = j.queue[1:], &batch[0]
	return batch, false
}

func (j *Journal) do(o *op) {
	var err error
	switch {
	case o.removal:
		j.files.remove()
		j.mark.close(true)
		j.told.close(true)
	case o.stored, o.forget:
		j.files.drop(o.msn, o.forget)
	case o.down:
		o.part.PutDown()
	case o.lost:
		j.files.delete(o.msn)
	default:
		err = j.files.write(o)
	}
	j.mu.Lock()
	if err != nil {
		j.miss(o.msn)
	} else {
		j.notePending(o)
	}
	j.backlog -= o.size()
	j.doing = nil
	j.mu.Unlock()
	if m := o.part; m != nil && !o.down && err == nil { // not before: then its bytes may be used for others
		m.written.Store(m.size)
	}
	if o.done != nil {
		close(o.done)
	}
	*o = op{} // the memory goes
}

// ErrLink is a folder of journals that is a symbolic link: what it leads to may be somebody else's.
var ErrLink = errors.New("the folder of journals is a symbolic link, which is not followed: what is in the folder is " +
	"deleted")

// Check is ErrLink when root, the folder of journals, is a link. It need not be there.
func Check(root string) error {
	info, err := os.Lstat(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at folder of journals: %w", err)
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s: %w", root, ErrLink)
	}
	return nil
}

// Sweep deletes the journals, or marks, below root that are not to be kept: of broadcasts that were finished elsewhere.
// Where root is a link it is ErrLink, and nothing is deleted.
func Sweep(root string, keep func(name string) bool) error {
	if err := Check(root); err != nil {
		return err
	}
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list journals: %w", err)
	}
	for _, e := range entries {
		if !keep(broadcastOf(e.Name())) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(root, e.Name())))
		}
	}
	return err
}
