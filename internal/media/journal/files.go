package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// files are those of a journal on the disk: the media of segments, and the index beside them.
type files struct {
	dir    string
	log    *slog.Logger
	index  index
	failed map[int64]bool     // segments whose files miss something
	names  map[int64][]string // of the media files
	made   bool               // the folder is there
	clean  bool               // and has nothing that the index does not name
	record []byte             // of the part that is written
	copied int64              // as mark.next is, of what another machine has copied; 0: nothing
}

func newFiles(dir string, log *slog.Logger) files {
	return files{
		dir: dir, log: log, index: index{dir: dir, live: map[int64]int64{}},
		failed: map[int64]bool{}, names: map[int64][]string{},
	}
}

// know takes note of the media of segments that an earlier process left.
func (f *files) know(all []*Segment) {
	for _, s := range all {
		for _, l := range s.Renditions {
			if !s.Stored {
				f.names[s.MSN] = append(f.names[s.MSN], mediaName(s.MSN, l.ID))
			}
		}
	}
}

// write puts the data into their file first and says in the index what is there then.
func (f *files) write(o *op) error {
	if f.failed[o.msn] {
		return errors.New("something before it is missing")
	}
	err := f.makeDir()
	record := o.note
	if m := o.part; m != nil && err == nil {
		if m.size == 0 {
			f.names[o.msn] = append(f.names[o.msn], mediaName(m.msn, m.rendition))
		}
		if err = m.write(o.data); err == nil {
			f.record = appendPart(f.record[:0], m, o.about, o.data)
			record = f.record
		}
	}
	if err == nil {
		err = f.index.append(o.msn, record, o.late)
	}
	if err != nil {
		f.failed[o.msn] = true
		f.made = false // perhaps that is it
		f.log.Warn("part journal can not be written", "media_sequence", o.msn, "error", err)
		return err
	}
	return nil
}

func (f *files) makeDir() error {
	if f.made {
		return nil
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("make journal folder: %w", err)
	}
	f.made = true
	if !f.clean {
		f.clean = true
		f.removeStrays()
	}
	return nil
}

// removeStrays deletes media of segments that were stored or forgotten, where the process died before it could.
func (f *files) removeStrays() {
	known := map[string]bool{indexName: true}
	for _, names := range f.names {
		for _, n := range names {
			known[n] = true
		}
	}
	entries, err := os.ReadDir(f.dir)
	for _, e := range entries {
		if !known[e.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(f.dir, e.Name())))
		}
	}
	if err != nil {
		f.log.Warn("part journal can not be cleared", "error", err)
	}
}

// drop deletes a segment's files, once the index says that they are not needed.
func (f *files) drop(msn int64, all bool) {
	delete(f.failed, msn)
	say := f.index.stored
	if all {
		say = f.index.forget
	}
	// a reader of the index finds that the segment is recorded, or that the files are gone
	if err := say(msn); err != nil {
		f.log.Warn("part journal can not be cleared", "error", err)
	}
	f.delete(msn)
}

// delete deletes the media of a segment.
func (f *files) delete(msn int64) {
	for _, name := range f.names[msn] {
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.log.Warn("part journal can not be deleted", "media_sequence", msn, "error", err)
		}
	}
	delete(f.names, msn)
}

// remove deletes all of them, and the folder.
func (f *files) remove() {
	f.index.close()
	if err := os.RemoveAll(f.dir); err != nil {
		f.log.Warn("part journal can not be deleted", "error", err)
	}
}

// doLate does one operation of a segment, unless it was done already, or what it follows was not.
func (f *files) doLate(s *Segment, kind byte, body, record []byte) (done bool, err error) {
	if s.Stored || s.torn {
		return false, nil
	}
	if err = os.MkdirAll(f.dir, 0o700); err != nil {
		return false, fmt.Errorf("make journal folder: %w", err)
	}
	if kind == kindLate {
		if kind, body, record, done, err = f.latePart(s, body); !done || err != nil {
			return false, err
		}
	} else if kind == kindNote && s.has(body) {
		return false, nil
	}
	if err = f.index.append(s.MSN, record, false); err != nil {
		return false, fmt.Errorf("write late record: %w", err)
	}
	s.replay(kind, body)
	return true, nil
}

// latePart writes the bytes of a part, if it is the next one of its segment, and gives the index's record of it.
func (f *files) latePart(s *Segment, body []byte) (kind byte, of, record []byte, isNext bool, err error) {
	at := fields{b: body}
	number, from := at.number(), at.number()
	kind, _, of, data, bad := next(at.b)
	if at.bad || bad != nil || kind != kindPart {
		return 0, nil, nil, false, errTorn
	}
	record = at.b[:len(at.b)-len(data)]
	named := fields{b: of}
	named.number() // ticks
	size := named.number()
	named.number() // checksum
	l := s.Rendition(string(named.b))
	if named.bad || l == nil || !l.Begun || l.Whole || int64(len(l.Parts)) != number || l.end(len(l.Parts)) != from ||
		size != int64(len(data)) {
		return 0, nil, nil, false, nil
	}
	file, err := os.OpenFile(filepath.Join(f.dir, mediaName(s.MSN, l.ID)), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteAt(data, from)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return 0, nil, nil, false, fmt.Errorf("write late part: %w", err)
	}
	return kind, of, record, true, nil
}
