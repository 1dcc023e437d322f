// Package journal keeps the parts of segments that storage does not have yet in files of this machine, so that a killed process loses
// at most what it was writing: a file per media sequence number, appended part by part before the part is published, deleted once the
// segment is recorded. It must never know playlists, storage or who watches.
//
// A disk that is slow or hangs never delays the stream for longer than a few milliseconds: whoever appends waits that long at most,
// then goes on; what does not fit into a bounded backlog is not journalled and counted. Files are not synced: they outlive the
// process, not the machine's power.
// Goroutines: none of its own; Run does the writing and is called by the owner.
package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options is what a Journal needs.
type Options struct {
	Dir        string        // a folder of its own; it is made when needed and removed by Close
	Patience   time.Duration // how long an append waits for the disk at most; 5 ms when 0
	MaxBacklog int64         // bytes that may wait for the disk; 16 MiB when 0
	Logger     *slog.Logger
}

// Journal is the journal of one broadcast.
type Journal struct {
	opt Options

	mu      sync.Mutex
	queue   []op
	backlog int64
	slow    bool           // somebody waited in vain; nobody waits until the backlog is written
	broken  map[int64]bool // segments to which nothing more is appended: something did not fit or could not be written
	closed  bool
	stats   Stats
	wake    chan struct{} // one token: the queue has grown or the journal is closed

	timer *time.Timer // of the one who appends

	files  map[int64]*os.File // Run's own, as are failed: segments whose file misses something, and spare: an empty file waits for reuse
	failed map[int64]bool
	spare  bool
}

// Stats counts what went wrong.
type Stats struct {
	Late    int64 // records that were published before they were written
	Missing int64 // records that were not written at all
}

type op struct {
	msn     int64
	forget  bool
	removal bool // of everything
	head    []byte
	data    []byte
	done    chan struct{} // nil: nobody waits
}

const (
	suffix    = ".parts"
	spareName = "spare"
)

// New returns a Journal in o.Dir. What an earlier process left there is read by Left.
func New(o Options) *Journal {
	if o.Patience <= 0 {
		o.Patience = 5 * time.Millisecond
	}
	if o.MaxBacklog <= 0 {
		o.MaxBacklog = 16 << 20
	}
	return &Journal{opt: o, broken: map[int64]bool{}, wake: make(chan struct{}, 1), files: map[int64]*os.File{}, failed: map[int64]bool{}}
}

// Left yields what an earlier process left, in order of media sequence numbers, each cut to what is whole. It is called before
// anything is appended.
func (j *Journal) Left(yield func(*Segment) bool) {
	entries, err := os.ReadDir(j.opt.Dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			j.opt.Logger.Error("part journal can not be read", "error", err)
		}
		return
	}
	var all []int64
	for _, e := range entries {
		name, ours := strings.CutSuffix(e.Name(), suffix)
		if msn, err := strconv.ParseInt(name, 10, 64); ours && err == nil && msn >= 0 {
			all = append(all, msn)
		}
	}
	slices.Sort(all)
	for _, msn := range all {
		s, err := j.load(msn)
		if err != nil {
			j.opt.Logger.Error("part journal can not be read", "msn", msn, "error", err)
			continue
		}
		if !yield(s) {
			return
		}
	}
}

func (j *Journal) path(msn int64) string {
	return filepath.Join(j.opt.Dir, strconv.FormatInt(msn, 10)+suffix)
}

func (j *Journal) load(msn int64) (*Segment, error) {
	f, err := os.Open(j.path(msn))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return read(f, info.Size(), msn), nil
}

// Append writes a record to a segment's file; data must not change later. With wait it returns when the record is with the operating
// system, or when patience is at its end. One goroutine at a time may wait.
func (j *Journal) Append(msn int64, r Record, data []byte, wait bool) {
	o := op{msn: msn, head: appendHead(nil, &r, data), data: data}
	size := int64(len(o.head) + len(o.data))
	j.mu.Lock()
	if j.closed || j.broken[msn] || j.backlog+size > j.opt.MaxBacklog {
		j.miss(msn)
		j.mu.Unlock()
		return
	}
	wait = wait && !j.slow
	if wait {
		o.done = make(chan struct{})
	}
	j.push(o, size)
	j.mu.Unlock()
	if !wait {
		return
	}
	if j.timer == nil {
		j.timer = time.NewTimer(j.opt.Patience)
	} else {
		j.timer.Reset(j.opt.Patience)
	}
	select {
	case <-o.done:
		j.timer.Stop()
	case <-j.timer.C:
		j.late()
	}
}

// miss notes that a segment lacks a record. Called with the lock.
func (j *Journal) miss(msn int64) {
	if j.closed {
		return
	}
	j.stats.Missing++
	if !j.broken[msn] {
		j.broken[msn] = true
		j.opt.Logger.Warn("part journal does not keep up: a segment is not journalled to its end", "msn", msn)
	}
}

func (j *Journal) late() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stats.Late++
	if !j.slow && len(j.queue) > 0 {
		j.slow = true // no alarm: a busy machine does it now and then, and only a crash in this moment loses a part more
		j.opt.Logger.Debug("part journal is slow: parts are published before they are written")
	}
}

func (j *Journal) push(o op, size int64) {
	j.queue = append(j.queue, o)
	j.backlog += size
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// Forget deletes a segment's file: it is recorded, or was given up.
func (j *Journal) Forget(msn int64) { j.order(op{msn: msn, forget: true}) }

// Close says that everything is recorded: Run deletes what is left, and the folder, and ends.
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
	j.push(o, 0)
}

// Stats tells what went wrong so far.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats
}

// Run writes until the journal is closed or ctx ends; what was appended before is written first.
func (j *Journal) Run(ctx context.Context) error {
	defer j.closeFiles()
	for {
		ended := ctx.Err() // asked before the queue: what was ordered before the end is done
		batch, closed := j.take()
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

// take gives the next operation: one, so that the backlog counts what is not written.
func (j *Journal) take() (batch []op, closed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) == 0 {
		j.slow, j.queue = false, nil
		return nil, j.closed
	}
	batch = j.queue[:1:1]
	j.queue = j.queue[1:]
	return batch, false
}

func (j *Journal) do(o *op) {
	switch {
	case o.removal:
		j.closeFiles()
		if err := os.RemoveAll(j.opt.Dir); err != nil {
			j.opt.Logger.Warn("part journal can not be deleted", "error", err)
		}
	case o.forget:
		j.closeFile(o.msn)
		delete(j.failed, o.msn)
		if err := j.remove(o.msn); err != nil && !errors.Is(err, fs.ErrNotExist) {
			j.opt.Logger.Warn("part journal can not be deleted", "msn", o.msn, "error", err)
		}
	default:
		err := j.write(o)
		j.mu.Lock()
		if err != nil {
			j.miss(o.msn)
		}
		j.backlog -= int64(len(o.head) + len(o.data))
		j.mu.Unlock()
		if o.done != nil {
			close(o.done)
		}
	}
	o.head, o.data = nil, nil
}

func (j *Journal) write(o *op) error {
	if j.failed[o.msn] {
		return errors.New("something before it is missing")
	}
	f, err := j.file(o.msn)
	if err == nil {
		err = writeOnce(f, o.head, o.data)
	}
	if err != nil {
		j.failed[o.msn] = true
		j.opt.Logger.Warn("part journal can not be written", "msn", o.msn, "error", err)
	}
	return err
}

const maxScratch = 256 << 10 // bytes of a record that is written at once

var scratch = sync.Pool{New: func() any { return new([]byte) }} //nolint:gochecknoglobals // scratch memory, no state that anyone could see

// writeOnce puts head and data together: to copy them costs less than a system call, and what wakes up with it.
func writeOnce(f *os.File, head, data []byte) error {
	if len(head)+len(data) > maxScratch {
		if _, err := f.Write(head); err != nil {
			return err
		}
		_, err := f.Write(data)
		return err
	}
	b, _ := scratch.Get().(*[]byte)
	defer scratch.Put(b)
	*b = append(append((*b)[:0], head...), data...)
	_, err := f.Write(*b)
	return err
}

// remove empties a segment's file and keeps it for the next segment: to delete one and make another every few seconds is work for the
// file system, which some do badly. It is empty before it changes its name, so that a crash never leaves it under a wrong one.
func (j *Journal) remove(msn int64) error {
	path := j.path(msn)
	if j.spare || os.Truncate(path, 0) != nil {
		return os.Remove(path)
	}
	err := os.Rename(path, filepath.Join(j.opt.Dir, spareName))
	j.spare = err == nil
	return err
}

// create opens the file of a new segment.
func (j *Journal) create(msn int64) (*os.File, error) {
	if j.spare {
		j.spare = false
		if err := os.Rename(filepath.Join(j.opt.Dir, spareName), j.path(msn)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return os.OpenFile(j.path(msn), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// maxFiles bounds the open files: the renditions of a broadcast are in at most two segments at a time.
const maxFiles = 3

func (j *Journal) file(msn int64) (*os.File, error) {
	if f := j.files[msn]; f != nil {
		return f, nil
	}
	f, err := j.create(msn)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(j.opt.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("make journal folder: %w", err)
		}
		f, err = j.create(msn)
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if len(j.files) >= maxFiles {
		oldest := msn
		for k := range j.files {
			oldest = min(oldest, k)
		}
		j.closeFile(oldest)
	}
	j.files[msn] = f
	return f, nil
}

func (j *Journal) closeFile(msn int64) {
	if f := j.files[msn]; f != nil {
		_ = f.Close() // nothing is buffered
		delete(j.files, msn)
	}
}

func (j *Journal) closeFiles() {
	for msn := range j.files {
		j.closeFile(msn)
	}
}

// Sweep deletes the journals below root that nobody keeps: of broadcasts that were finished elsewhere.
func Sweep(root string, keep func(name string) bool) error {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list journals: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() && !keep(e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(root, e.Name())))
		}
	}
	return err
}
