package journal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// told is what players were told of segments that are not recorded: where each begins, and how long it is. It is an
// index without parts, in the machine's memory beside the mark, so that it is whole where the disk is full or hangs.
// Who goes on after a crash lists what is lost as it was listed.
type told struct {
	mu    sync.Mutex
	index index // in no folder: there is none, or it is not kept any more
	made  bool
}

const (
	toldSuffix = ".told"
	maxTold    = 4 << 20 // bytes of one broadcast: hours without storage
)

// newTold is beside a mark.
func newTold(mark string) *told {
	if mark == "" {
		return &told{}
	}
	return &told{index: index{dir: mark + toldSuffix, live: map[int64]int64{}}}
}

// add keeps a record of a segment.
func (t *told) add(msn int64, record []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.index.dir == "":
		return nil
	case t.index.size+int64(len(record)) > maxTold:
		return errNoRoom
	case !t.made:
		if err := os.MkdirAll(t.index.dir, 0o700); err != nil {
			return err //nolint:wrapcheck // the caller says what it was about
		}
		t.made = true
	}
	return t.index.append(msn, record, false)
}

// forget lets go of a segment: it is recorded, or was never published.
func (t *told) forget(msn int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.index.dir != "" {
		_ = t.index.forget(msn) // a reader finds that the segment is recorded, or was not published
	}
}

// read adds what an earlier process has told to what the disk has of its segments.
func (t *told) read(all []*Segment) []*Segment {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.index.dir == "" {
		return all
	}
	have, err := t.index.read()
	if err != nil {
		return all // nothing was told
	}
	for _, s := range have {
		s.dir = filepath.Dir(s.dir) // no media lies there
		i, found := find(all, s.MSN)
		switch {
		case s.torn:
		case !found:
			all = slices.Insert(all, i, &Segment{MSN: s.MSN, dir: s.dir})
			all[i].addTold(s)
		case s.Generation > all[i].Generation && !all[i].Stored: // of that the disk has nothing
			*all[i] = Segment{MSN: s.MSN, dir: all[i].dir, Texts: all[i].Texts}
			all[i].addTold(s)
		case s.Generation == all[i].Generation:
			all[i].addTold(s)
		}
	}
	return all
}

// close lets go of the files: as they are, or for ever.
func (t *told) close(remove bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.index.close()
	if remove && t.index.dir != "" {
		_ = os.RemoveAll(t.index.dir) // it may not be there
	}
	t.index.dir = ""
}

// addTold adds what players were told of a segment to what the disk has of it.
func (s *Segment) addTold(by *Segment) {
	s.Generation = by.Generation
	if s.Target == 0 {
		s.Target = by.Target
	}
	for _, from := range by.Renditions {
		l := s.rendition(from.ID)
		if l.Rendition == nil {
			l.Rendition = from.Rendition
		}
		for _, in := range from.Inits {
			if !slices.ContainsFunc(l.Inits, func(have Init) bool { return have.Number == in.Number }) {
				l.Inits = append(l.Inits, in)
			}
		}
		if !l.Begun {
			l.Begun, l.Start, l.Time, l.Use = from.Begun, from.Start, from.Time, from.Use
			l.Discontinuity, l.Slate = from.Discontinuity, from.Slate
		}
		if from.Whole {
			l.Told = from.Duration
		}
		if from.Whole && len(l.Parts) > 0 && len(l.Parts) == from.count { // all but the word of its end
			l.Whole, l.Duration = true, from.Duration
		}
	}
}

// DerivedSuffix ends the names of the journals, and of their marks, of the renditions that are made of a broadcast's
// own: what stands in front of it is the name of the broadcast's.
const DerivedSuffix = ".derived"

// broadcastOf is whose journal or mark, or what is beside it, has a name.
func broadcastOf(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, toldSuffix), DerivedSuffix)
}
