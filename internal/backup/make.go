package backup

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"millrace/internal/fault"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/rows"
)

// Options is what Make needs.
type Options struct {
	Storage  blob.Store // of the service; nil: the snapshot has rows alone
	Target   blob.Store // of the backup
	Database Database
	Version  string // of the program
	// Keep is how many snapshots stay, with the new one; at least 1.
	Keep int
	// MasterKey gives the text of the master key with a fingerprint; nil: it stays out of the backup.
	MasterKey func(fingerprint string) (string, error)
	Progress  Progress // nil: nobody looks
	// Looked says that somebody looks at the progress: then what lies ahead is counted first, which takes a further
	// list of the storage.
	Looked bool
	Now    func() time.Time
}

// Made is what a backup came to.
type Made struct {
	Manifest

	Sent, SentBytes int64    // objects that were not in the backup
	Removed         int      // snapshots
	Lacks           Findings // objects that rows name and the storage has not got
}

// maker makes a backup.
type maker struct {
	common

	opt             Options
	storage         blob.Store
	run             string // who holds the lock
	keep            bool   // what was known stays, though the storage has not got it any more
	readBack        bool   // what was sent is read again and compared
	sent, sentBytes atomic.Int64
}

// rounds is how many snapshots are tried, as long as assets are deleted while each is completed.
const rounds = 5

// Make adds a snapshot to a backup. When it ends early, in whatever way, the backup has the snapshots that it had, and
// another run goes on with what was copied.
//
// The order is what makes it consistent without a halt. All objects are copied; then comes the snapshot of the rows;
// then all objects that have come meanwhile. An object that a row names is stored before its row is, and never changes,
// so it was there when the second pass began, unless it has been deleted in between. So whatever the rows name is then
// looked for, and where something is missing there is a further snapshot, of which it is no part any more. What is
// missing from two snapshots the service itself has lost.
func Make(ctx context.Context, o Options) (made Made, err error) {
	o.Keep = max(o.Keep, 1)
	if o.Progress == nil {
		o.Progress = silent{}
	}
	m := &maker{
		common: common{o.Target, ofBackup(), o.Progress, o.Now}, opt: o, storage: o.Storage, run: newName(o.Now()),
	}
	err = m.locked(ctx, m.run, func(ctx context.Context) error {
		made, err = m.make(ctx)
		return err
	})
	made.Sent, made.SentBytes = m.sent.Load(), m.sentBytes.Load()
	return made, err
}

func (m *maker) make(ctx context.Context) (made Made, err error) {
	begun := m.now()
	name, known, err := m.known(ctx)
	if err != nil {
		return made, err
	}
	if m.opt.Looked {
		m.progress.Begin(StepLook, -1, -1)
		objects, bytes, failed := m.plan(ctx, known())
		if failed != nil {
			return made, failed
		}
		m.progress.Begin(StepCopy, objects, bytes)
	}
	list, err := m.pass(ctx, known())
	if err != nil {
		return made, err
	}
	s := &snapshot{list: list}
	m.keep = true // of what is deleted from now on, the snapshot may name some
	defer func() { s.close() }()
	for round := 1; ; round++ {
		before := s.lacks
		if err = m.snapshot(ctx, s); err != nil {
			return made, err
		}
		if len(s.lacks) == 0 || round == rounds || round > 1 && slices.Equal(before, s.lacks) {
			break
		}
	}
	made.Manifest = Manifest{
		Format: manifestFormat, Name: name, Version: m.opt.Version, Begun: begun.UTC(), Made: s.made.UTC(),
		Schema: s.of.Schema, MasterKey: s.of.MasterKey, MasterKeyIncluded: m.opt.MasterKey != nil, Counts: s.of.Counts,
		Objects: s.list.objects, Bytes: s.list.total, Missing: s.lacking,
	}
	for _, n := range s.lacks {
		made.Lacks.add(n.String())
	}
	made.Lacks.Count = s.lacking
	if err = m.write(ctx, &made.Manifest, s); err != nil {
		return made, err
	}
	made.Removed, err = m.prune(ctx, s)
	return made, err
}

// known gives the new snapshot's name, and what is known of the backup's objects: by the newest snapshot's list, and by
// runs that were broken off.
func (m *maker) known(ctx context.Context) (name string, list func() iter.Seq2[entry, error], err error) {
	complete, _, err := m.snapshots(ctx)
	if err != nil {
		return "", nil, err
	}
	name = m.run
	if n := len(complete); n > 0 && name <= complete[n-1] { // a clock has been put back
		return "", nil, fmt.Errorf("the newest snapshot, %s, is of a time that has not come: look at this machine's "+
			"clock",
			complete[n-1])
	}
	var lists []iter.Seq2[entry, error]
	if len(complete) > 0 {
		lists = append(lists, listAt(ctx, m.target, snapshotKey(complete[len(complete)-1], listFile)))
	}
	runs, err := m.runs(ctx)
	if err != nil {
		return "", nil, err
	}
	lists = append(lists, runs...)
	return name, func() iter.Seq2[entry, error] {
		// What can't be read is copied again.
		return merged(func(err error) {
			m.progress.Say(fmt.Sprintf("of what was copied before a part is unknown: %v", err))
		}, lists...)
	}, nil
}

// snapshot is one that is being made.
type snapshot struct {
	of      Rows
	made    time.Time
	rows    *scratch
	list    *scratch // of all objects
	lacks   []named  // objects that rows name, and that the list has not got
	lacking int64    // how many there are
}

func (s *snapshot) close() {
	for _, f := range []*scratch{s.rows, s.list} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// snapshot takes a snapshot of the rows, copies what has come since the last pass and looks whether all is there.
func (m *maker) snapshot(ctx context.Context, s *snapshot) (err error) {
	m.progress.Begin(StepRows, -1, -1)
	s.made = m.now()
	if err = s.read(ctx, m.opt.Database); err != nil {
		return err
	}
	m.progress.Begin(StepCatchUp, -1, -1)
	last := s.list
	if s.list, err = m.pass(ctx, last.list()); err != nil {
		s.list = last
		return err
	}
	_ = last.Close()
	if m.storage == nil {
		return nil
	}
	m.progress.Begin(StepCheck, -1, -1)
	have, err := newKeySet(s.list.list())
	if err != nil {
		return err
	}
	return s.each(func(r *rows.Reader) (err error) {
		s.lacks, s.lacking, err = missing(ctx, r, have, m.index)
		return err
	})
}

// each reads the rows.
func (s *snapshot) each(read func(*rows.Reader) error) error {
	unzip, err := gzip.NewReader(s.rows.reader())
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	stream, err := rows.NewReader(unzip)
	if err != nil {
		return err
	}
	return read(stream)
}

// read takes the snapshot of the rows.
func (s *snapshot) read(ctx context.Context, from Database) (err error) {
	if s.rows != nil {
		_ = s.rows.Close()
	}
	if s.rows, err = newScratch(); err != nil {
		return err
	}
	zip := gzip.NewWriter(s.rows)
	if s.of, err = from.Snapshot(ctx, zip); err != nil {
		return err
	}
	if err = zip.Close(); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

// index reads an index of a timeline from the storage, or from the backup when it has been deleted there.
func (m *maker) index(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := opening(m.storage, "")(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return opening(m.target, m.at.objects)(ctx, key)
	}
	return r, err
}

// write puts the snapshot into the backup, with its manifest at last.
func (m *maker) write(ctx context.Context, manifest *Manifest, s *snapshot) (err error) {
	for _, f := range []struct {
		name string
		from *scratch
		as   *File
	}{{rowsFile, s.rows, &manifest.Rows}, {listFile, s.list, &manifest.List}} {
		err = patiently(ctx, func() error {
			through := summing(f.from.reader(), m.progress.Moved)
			if failed := m.target.Put(ctx, snapshotKey(manifest.Name, f.name), through); failed != nil {
				return failed
			}
			*f.as = File{through.size, through.sum()}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if m.opt.MasterKey != nil {
		text, err := m.opt.MasterKey(manifest.MasterKey)
		if err != nil {
			return err
		}
		if err = m.target.Put(ctx, snapshotKey(manifest.Name, masterKeyFile),
			strings.NewReader(text+"\n")); err != nil {
			return err
		}
	}
	if by, err := m.holder(ctx); err != nil || by.Run != m.run {
		return cmp.Or(err, errLockLost)
	}
	return m.putManifest(ctx, manifest)
}

// prune removes what no snapshot needs that is to stay.
func (m *maker) prune(ctx context.Context, s *snapshot) (removed int, err error) {
	complete, all, err := m.snapshots(ctx)
	if err != nil {
		return 0, err
	}
	stay := complete[max(0, len(complete)-m.opt.Keep):]
	for _, name := range all {
		if slices.Contains(stay, name) {
			continue
		}
		if slices.Contains(complete, name) {
			removed++
			if err = m.target.Delete(ctx, snapshotKey(name, manifestFile)); err != nil { // before what it names
				return removed, err
			}
		}
		if err = m.removeAll(ctx, snapshotsRoot+name+"/"); err != nil {
			return removed, err
		}
	}
	if err = m.removeAll(ctx, pendingRoot); err != nil {
		return removed, err
	}
	lists := []iter.Seq2[entry, error]{s.list.list()}
	for _, name := range stay[:len(stay)-1] {
		lists = append(lists, listAt(ctx, m.target, snapshotKey(name, listFile)))
	}
	return removed, m.removeUnnamed(ctx, lists)
}

// removeUnnamed removes the objects that no list has; none when one of the lists can't be read.
func (m *maker) removeUnnamed(ctx context.Context, lists []iter.Seq2[entry, error]) error {
	var bad error
	list := pull(merged(func(err error) { bad = errors.Join(bad, err) }, lists...))
	defer list.stop()
	var gone []string
	remove := func() error {
		err := m.target.Delete(ctx, gone...)
		gone = gone[:0]
		return err
	}
	for key, err := range m.target.List(ctx, objectsRoot) {
		if err != nil {
			return fmt.Errorf("list objects of the backup: %w", err)
		}
		own := strings.TrimPrefix(key, objectsRoot)
		for list.ok && list.head.Key < own {
			list.advance()
		}
		if bad != nil {
			m.progress.Say(fmt.Sprintf("no objects are removed from the backup, as the list of a snapshot is "+
				"damaged: %v", bad))
			return nil
		}
		if list.ok && list.head.Key == own {
			continue
		}
		if gone = append(gone, key); len(gone) == pieceObjects {
			if err := remove(); err != nil {
				return err
			}
		}
	}
	return remove()
}
