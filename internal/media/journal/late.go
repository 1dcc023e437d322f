package journal

import (
	"encoding/binary"
	"errors"
	"reflect"
	"slices"

	"millrace/internal/media/timeline"
)

// What the disk has not done in time. Players are told of a part once the disk has it, or has had its time. So that it
// outlives the process in the second case too, the operations that wait are kept in the machine's memory (tmpfs),
// behind the mark, until the disk has done all of them. A successor on the machine does those that the index has not.
//
// They are records as the index has them. A part's is of the kind late: its number in the segment and where in the file
// it begins, as numbers, then the index's record of it, then its bytes.

// waiting are the records of what waits: what is written with the next record, what is being done, what is queued.
// Called with the lock.
func (j *Journal) waiting() []byte {
	b := slices.Concat(j.pending...)
	if j.doing != nil {
		b = appendOp(b, j.doing)
	}
	for i := range j.queue {
		b = appendOp(b, &j.queue[i])
	}
	return b
}

// keepAll keeps what waits, and reports whether it is. Called with the lock.
func (j *Journal) keepAll() bool { return j.kept(j.mark.add(j.waiting())) }

// keep keeps an operation that was queued just now, and reports whether it is. Called with the lock.
func (j *Journal) keep(o *op) bool {
	err := j.mark.add(appendOp(nil, o))
	if errors.Is(err, errNoRoom) { // much of what is there may be done by now
		if all := j.waiting(); len(all) <= maxLate {
			err = errors.Join(j.mark.clear(), j.mark.add(all))
		}
	}
	return j.kept(err)
}

func (j *Journal) kept(err error) bool {
	if err != nil {
		j.opt.Logger.Debug("what the part journal has not written in time is not in memory either", "error", err)
	}
	return err == nil
}

// inTime forgets what was kept, as the disk has done all. Called with the lock.
func (j *Journal) inTime() {
	if err := j.mark.clear(); err != nil {
		j.opt.Logger.Warn("late records of the part journal stay in memory", "error", err)
	}
}

// notePending notes whether an operation that was done is in the index's file by now. Called with the lock.
func (j *Journal) notePending(o *op) {
	switch {
	case o.note != nil && o.late:
		j.pending = append(j.pending, o.note)
	case o.note != nil || o.part != nil && !o.down: // the others may write nothing
		j.pending = nil
	}
}

// appendOp appends what has to be known to do an operation later.
func appendOp(b []byte, o *op) []byte {
	switch {
	case o.removal, o.down:
		return b
	case o.stored:
		return appendWord(b, kindStored, o.msn)
	case o.forget:
		return appendWord(b, kindForget, o.msn)
	case o.part == nil:
		return append(b, o.note...)
	}
	from := len(b)
	b = append(b, make([]byte, prefixSize)...)
	b = binary.AppendUvarint(append(b, kindLate), uint64(o.msn))
	b = binary.AppendUvarint(b, uint64(o.number))
	b = binary.AppendUvarint(b, uint64(o.at))
	b = appendPart(b, o.part, o.about, o.data)
	return seal(append(b, o.data...), from)
}

// catchUp does what an earlier process kept of what the disk had not done in time. all is what the index has, and what
// it has then comes back.
func (j *Journal) catchUp(all []*Segment) []*Segment {
	late := j.mark.readLate()
	for rest := late; ; {
		kind, msn, body, behind, err := next(rest)
		if err != nil {
			break
		}
		record := rest[:len(rest)-len(behind)]
		rest = behind
		if all, err = j.files.late(all, kind, msn, body, record); err != nil {
			j.opt.Logger.Warn("what the part journal had not written in time is lost", "media_sequence", msn,
				"error", err)
			break
		}
	}
	if len(late) > 0 {
		j.inTime()
	}
	return all
}

// late does one operation that the index may not have.
func (f *files) late(all []*Segment, kind byte, msn int64, body, record []byte) ([]*Segment, error) {
	i, found := find(all, msn)
	if kind == kindForget {
		if found {
			all = slices.Delete(all, i, i+1)
		}
		return all, f.index.forget(msn)
	}
	s := &Segment{MSN: msn, dir: f.dir}
	if found {
		s = all[i]
	}
	done, err := f.doLate(s, kind, body, record)
	if done && !found {
		all = slices.Insert(all, i, s)
	}
	return all, err
}

// has reports whether a segment has what a note says.
func (s *Segment) has(body []byte) bool {
	r, _, err := parseNote(body)
	if err != nil {
		return true // it says nothing
	}
	switch {
	case r.Text != nil:
		return slices.ContainsFunc(s.Texts, func(t timeline.Text) bool { return reflect.DeepEqual(t, *r.Text) })
	case r.Init != nil:
		l := s.Rendition(r.Init.Rendition)
		return l != nil && slices.ContainsFunc(l.Inits, func(i Init) bool { return i.Number == r.Number })
	case r.Cut != "":
		return false // it may be said again
	case r.Begin != "":
		l := s.Rendition(r.Begin)
		return r.Generation < s.Generation || l != nil && l.Begun && r.Generation == s.Generation
	}
	l := s.Rendition(r.End)
	return l == nil || l.Whole
}
