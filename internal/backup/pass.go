package backup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"millrace/internal/fault"
	"millrace/internal/storage/blob"
)

// item is a key of the storage or of what is known of the backup, with what there is of it.
type item struct {
	key    string
	source *blob.Object // nil: the storage has not got it
	known  *entry       // nil: nothing is known of the backup's
	kept   int64        // size of the backup's; -1: it has none
}

// items goes through the storage, what is known of the backup and what is in it, side by side.
func (m *maker) items(ctx context.Context, known iter.Seq2[entry, error]) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		objects := iter.Seq2[blob.Object, error](func(func(blob.Object, error) bool) {})
		if m.storage != nil {
			objects = blob.Objects(ctx, m.storage, "")
		}
		source := pull(objects)
		kept := pull(blob.Objects(ctx, m.target, m.at.objects))
		list := pull(known)
		defer func() { source.stop(); kept.stop(); list.stop() }()
		for {
			for _, err := range []error{source.err, kept.err, list.err} {
				if err != nil {
					yield(item{}, fmt.Errorf("list objects: %w", err))
					return
				}
			}
			next := item{kept: -1}
			take := func(ok bool, key string) {
				if ok && (next.key == "" || key < next.key) {
					next.key = key
				}
			}
			take(source.ok, source.head.Key)
			take(list.ok, list.head.Key)
			if next.key == "" {
				return
			}
			for kept.ok && strings.TrimPrefix(kept.head.Key, m.at.objects) < next.key {
				kept.advance()
			}
			if source.ok && source.head.Key == next.key {
				o := source.head
				next.source = &o
				source.advance()
			}
			if list.ok && list.head.Key == next.key {
				e := list.head
				next.known = &e
				list.advance()
			}
			if kept.ok && strings.TrimPrefix(kept.head.Key, m.at.objects) == next.key {
				next.kept = kept.head.Size
			}
			if stored(next.key) && !yield(next, nil) {
				return
			}
		}
	}
}

// carried reports whether the backup has what the storage has, without a look at the bytes.
func (i item) carried() bool {
	return i.source != nil && i.kept >= 0 && i.known != nil && i.known.Size == i.kept && i.source.Size == i.kept &&
		i.known.Time == i.source.ModTime.UnixMilli()
}

// plan counts what is to be copied.
func (m *maker) plan(ctx context.Context, known iter.Seq2[entry, error]) (objects, bytes int64, err error) {
	for i, err := range m.items(ctx, known) {
		if err != nil {
			return 0, 0, err
		}
		if i.source != nil && !i.carried() {
			objects, bytes = objects+1, bytes+i.source.Size
		}
	}
	return objects, bytes, nil
}

// copied is what has become of an item.
type copied struct {
	entry entry
	has   bool // the backup has it
	sent  bool
}

// copy makes the backup have what the storage has.
func (m *maker) copy(ctx context.Context, i item) (copied, error) {
	switch {
	case i.carried():
		return copied{entry: *i.known, has: true}, nil
	case i.source == nil:
		return copied{entry: *i.known, has: m.keep && i.kept == i.known.Size}, nil
	}
	defer m.progress.Done(1)
	at := i.source.ModTime.UnixMilli()
	if i.known != nil && i.kept == i.known.Size && i.source.Size == i.kept {
		size, sum, err := look(ctx, m.storage, i.key, m.progress.Moved)
		if fault.Is(err, fault.NotFound) {
			return copied{entry: *i.known, has: true}, nil
		}
		if err != nil {
			return copied{}, err
		}
		if size == i.known.Size && sum == i.known.Sum { // it was only touched
			return copied{entry: entry{i.key, size, sum, at}, has: true, sent: true}, nil
		}
	}
	size, sum, err := transfer(ctx, m.storage, i.key, m.target, m.at.objects+i.key, nil, m.progress.Moved)
	if fault.Is(err, fault.NotFound) { // deleted since it was listed
		return copied{}, nil
	}
	if err != nil {
		return copied{}, fmt.Errorf("copy object %s: %w", i.key, err)
	}
	if m.readBack {
		gotSize, got, err := look(ctx, m.target, m.at.objects+i.key, m.progress.Moved)
		if err == nil && (gotSize != size || got != sum) {
			err = errDamaged
		}
		if err != nil {
			return copied{}, fmt.Errorf("read object %s again: %w", i.key, err)
		}
	}
	m.sent.Add(1)
	m.sentBytes.Add(size)
	return copied{entry{i.key, size, sum, at}, true, true}, nil
}

// pass makes the backup have what the storage has now, and writes the list of it, with what is known besides.
func (m *maker) pass(ctx context.Context, known iter.Seq2[entry, error]) (_ *scratch, err error) {
	list, err := newScratch()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = list.Close()
		}
	}()
	out, err := newListWriter(list)
	if err != nil {
		return nil, err
	}
	j := &pending{store: m.target, root: m.at.pending, run: newName(m.now()), now: m.now}
	err = inOrder(ctx, m.items(ctx, known), m.copy, func(c copied) error {
		if !c.has {
			return nil
		}
		if failed := out.add(c.entry); failed != nil {
			return failed
		}
		if c.sent {
			return j.add(ctx, c.entry)
		}
		return nil
	})
	if err == nil && m.readBack {
		err = j.flush(ctx)
	}
	if err != nil {
		ending, done := context.WithTimeout(context.WithoutCancel(ctx), lockRenew)
		defer done()
		_ = j.flush(ending) // else it is copied again
		return nil, err
	}
	list.objects, list.total = out.objects, out.bytes
	return list, out.close()
}

// scratch is a local file without a name.
type scratch struct {
	*os.File

	objects, total int64 // of a list
}

func newScratch() (*scratch, error) {
	f, err := os.CreateTemp("", "millrace-backup-")
	if err == nil {
		err = os.Remove(f.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("make temporary file: %w", err)
	}
	return &scratch{File: f}, nil
}

// reader reads it from its beginning.
func (s *scratch) reader() io.Reader { return io.NewSectionReader(s.File, 0, 1<<62) }

// list gives the entries of a list.
func (s *scratch) list() iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		info, err := s.Stat()
		if err != nil {
			yield(entry{}, fmt.Errorf("read list of objects: %w", err))
			return
		}
		for e, err := range readList(s.reader(), info.Size()) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// How much is copied before it is noted: that is what a process that is killed has copied in vain.
const (
	pieceObjects = 1000
	pieceBytes   = 256 << 20
	pieceTime    = 20 * time.Second
	// mostRuns is how many runs that were killed are gone on behind.
	mostRuns = 32
)

// pending notes what a run has copied, in pieces that are lists.
type pending struct {
	store blob.Store
	root  string
	run   string
	now   func() time.Time

	piece []entry
	bytes int64
	since time.Time
	count int
}

func (p *pending) add(ctx context.Context, e entry) error {
	if len(p.piece) == 0 {
		p.since = p.now()
	}
	p.piece, p.bytes = append(p.piece, e), p.bytes+e.Size
	if len(p.piece) < pieceObjects && p.bytes < pieceBytes && p.now().Sub(p.since) < pieceTime {
		return nil
	}
	return p.flush(ctx)
}

func (p *pending) flush(ctx context.Context) error {
	if len(p.piece) == 0 {
		return nil
	}
	var text bytes.Buffer
	l, err := newListWriter(&text)
	for _, e := range p.piece {
		if err == nil {
			err = l.add(e)
		}
	}
	if err == nil {
		err = l.close()
	}
	if err != nil {
		return err
	}
	p.count++
	p.piece, p.bytes = p.piece[:0], 0
	key := fmt.Sprintf("%s%s/%08d", p.root, p.run, p.count)
	return patiently(ctx, func() error { return p.store.Put(ctx, key, bytes.NewReader(text.Bytes())) })
}

// runs gives the lists of what runs have copied that did not come to their end, the oldest first.
func (m *maker) runs(ctx context.Context) (all []iter.Seq2[entry, error], err error) {
	var names []string
	pieces := map[string][]string{}
	for key, err := range m.target.List(ctx, m.at.pending) {
		if err != nil {
			return nil, fmt.Errorf("list what was copied before: %w", err)
		}
		run, _, _ := strings.Cut(strings.TrimPrefix(key, m.at.pending), "/")
		if _, known := pieces[run]; !known {
			names = append(names, run)
		}
		pieces[run] = append(pieces[run], key)
	}
	for _, run := range names[max(0, len(names)-mostRuns):] {
		all = append(all, m.copiedBy(ctx, pieces[run]))
	}
	return all, nil
}

// copiedBy is what one run has copied: one piece goes on behind another.
func (m *maker) copiedBy(ctx context.Context, pieces []string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		last := ""
		for _, key := range pieces {
			for e, err := range listAt(ctx, m.target, key) {
				if err == nil && e.Key <= last {
					err = fmt.Errorf("%s does not go on behind the piece before", key)
				}
				if !yield(e, err) || err != nil {
					return
				}
				last = e.Key
			}
		}
	}
}

// removeAll deletes what a prefix leads to, some at a time.
func (m *maker) removeAll(ctx context.Context, prefix string) error {
	var keys []string
	for key, err := range m.target.List(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("list %s: %w", prefix, err)
		}
		keys = append(keys, key)
	}
	for some := range slices.Chunk(keys, pieceObjects) {
		if err := m.target.Delete(ctx, some...); err != nil {
			return err
		}
	}
	return nil
}
