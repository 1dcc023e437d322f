package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A journal can be copied while it is written: whoever is given its records (Tap) can have another machine keep them
// (Replica), and a journal on that machine, or on a third one, goes on with them (Options.Copied) as one that finds the
// files does. The records are those that are kept of a late disk: a part has its bytes behind it.

// Tap is given the records of a journal as they are appended, in their order.
type Tap interface {
	// Add takes a record, which does not change any more. It must not block.
	Add(record []byte)
	// Await waits until another machine has all that was added, if one keeps up, and not for longer than most.
	Await(most time.Duration)
}

// Copied is what another machine has copied of a journal.
type Copied struct {
	Records []byte // one behind the other
	Before  int64  // media sequence numbers from this one on can't be right
}

// tap gives a tap the record of an operation. Called with the journal's lock.
func tap(t Tap, o *op) {
	if t != nil && !o.removal && !o.down {
		t.Add(appendOp(nil, o))
	}
}

// awaitCopy waits for the machine that copies, for what is left of the journal's patience.
func awaitCopy(t Tap, patience time.Duration, since time.Time) {
	if t != nil {
		t.Await(patience - time.Since(since))
	}
}

// inherit does what another machine has copied, in a journal in which nothing is: this machine did not have it. What
// can't be done is left out.
func (f *files) inherit(all []*Segment, c *Copied) []*Segment {
	for rest := c.Records; len(rest) > 0; {
		kind, msn, body, behind, err := next(rest)
		record := rest[:len(rest)-len(behind)]
		rest = behind
		if err == nil && msn < c.Before {
			if kind == kindLate || kind == kindPart || kind == kindNote && ends(body) {
				f.copied = max(f.copied, msn+1)
			}
			all, err = f.late(all, kind, msn, body, record)
		}
		if err != nil {
			f.log.Warn("the copy of a part journal is not used to its end", "media_sequence", msn, "error", err)
			break
		}
	}
	*c = Copied{}
	return all
}

// ends reports whether a note says that a segment is whole.
func ends(body []byte) bool {
	r, _, err := parseNote(body)
	return err == nil && r.End != ""
}

// Inherited reports whether what is there was copied by another machine: more may have been published.
func (j *Journal) Inherited() bool { return j.files.copied > 0 }

// Outline is a record without the bytes of media: they are left out of a part's.
func Outline(record []byte) []byte {
	kind, _, body, _, err := next(record)
	if err != nil || kind != kindLate {
		return record
	}
	at := fields{b: body}
	at.number() // of the part
	at.number() // where it begins
	_, _, _, data, err := next(at.b)
	if at.bad || err != nil {
		return record
	}
	return slices.Clone(at.b[:len(at.b)-len(data)])
}

// Replica is what a journal says, in memory: all of what was not stored, of the rest the lengths of the parts. Its
// methods may be called at the same time.
type Replica struct {
	mu      sync.Mutex
	entries []entry
	last    uint64 // the number of the newest record
	bytes   int64  // of all records
	media   int64  // of those with media
}

type entry struct {
	number uint64
	msn    int64
	kind   byte
	record []byte
}

const (
	// entrySize is what an entry takes beside its record.
	entrySize = 64
	// mostEntries bounds the records of one replica: hours without storage.
	mostEntries = 1 << 16
	// maxCopied bounds a record that is copied: the largest part of a stream of 100 Mbit/s, and more.
	maxCopied = maxRecord
)

var errNoRecord = errors.New("that is no record of a journal")

// Add takes the next record. Errors are those of a record that makes no sense; too many records are one.
func (r *Replica) Add(record []byte) error {
	kind, msn, _, behind, err := next(record)
	switch {
	case err != nil || len(behind) > 0 || len(record) > maxCopied:
		return errNoRecord
	case kind != kindNote && kind != kindPart && kind != kindLate && kind != kindStored && kind != kindForget:
		return fmt.Errorf("kind %d: %w", kind, errNoRecord)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.entries) >= mostEntries && kind != kindForget {
		return fmt.Errorf("there are %d records already: %w", mostEntries, errNoRecord)
	}
	r.last++
	switch kind {
	case kindForget:
		r.drop(func(e *entry) bool { return e.msn == msn })
	case kindStored:
		for i := range r.entries {
			if e := &r.entries[i]; e.msn == msn {
				r.thin(e)
			}
		}
	}
	r.push(entry{r.last, msn, kind, record})
	return nil
}

// push is called with the lock.
func (r *Replica) push(e entry) {
	r.entries = append(r.entries, e)
	r.count(&e, 1)
}

func (r *Replica) count(e *entry, sign int64) {
	n := int64(len(e.record)) * sign
	r.bytes += n + entrySize*sign
	if e.kind == kindLate {
		r.media += n
	}
}

// drop is called with the lock.
func (r *Replica) drop(which func(*entry) bool) {
	r.entries = slices.DeleteFunc(r.entries, func(e entry) bool {
		if !which(&e) {
			return false
		}
		r.count(&e, -1)
		return true
	})
}

// thin leaves the bytes of a part out. Called with the lock.
func (r *Replica) thin(e *entry) {
	if e.kind != kindLate {
		return
	}
	r.count(e, -1)
	e.kind, e.record = kindPart, Outline(e.record)
	r.count(e, 1)
}

// Thin leaves out the media of the oldest segment that has some, and says how much that was; 0: there is none. What is
// left of it says how long it was.
func (r *Replica) Thin() (bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, oldest, found := r.bytes, int64(0), false
	for i := range r.entries {
		if e := &r.entries[i]; e.kind == kindLate && (!found || e.msn < oldest) {
			oldest, found = e.msn, true
		}
	}
	if !found {
		return 0
	}
	for i := range r.entries {
		if e := &r.entries[i]; e.msn == oldest {
			r.thin(e)
		}
	}
	return was - r.bytes
}

// Since are the records behind the one of a number, with at least one if there is any and no more than so many bytes
// else; last is the number of the last one of them.
func (r *Replica) Since(number uint64, most int) (records [][]byte, last uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, _ := slices.BinarySearchFunc(r.entries, number+1,
		func(e entry, n uint64) int { return cmp.Compare(e.number, n) })
	for last = number; i < len(r.entries); i++ {
		e := &r.entries[i]
		if most -= len(e.record); most < 0 && len(records) > 0 {
			return records, last
		}
		records, last = append(records, e.record), e.number
	}
	return records, max(last, r.last)
}

// Fetched forgets, of the records up to a number, that others were to forget something.
func (r *Replica) Fetched(number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(func(e *entry) bool { return e.kind == kindForget && e.number <= number })
}

// Last is the number of the newest record.
func (r *Replica) Last() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Size is how many bytes it takes.
func (r *Replica) Size() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

// All are all its records, one behind the other.
func (r *Replica) All() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []byte
	for i := range r.entries {
		out = append(out, r.entries[i].record...)
	}
	return out
}

// Fill adds the records of a copy, up to the first one that makes no sense.
func (r *Replica) Fill(records []byte) {
	for rest := records; len(rest) > 0; {
		_, _, _, behind, err := next(rest)
		if err != nil || r.Add(rest[:len(rest)-len(behind):len(rest)-len(behind)]) != nil {
			return
		}
		rest = behind
	}
}

// Frame cuts the first record off b; false: there is none that is whole. An error: there never will be.
func Frame(b []byte) (record, rest []byte, err error) {
	if len(b) < prefixSize {
		return nil, b, nil
	}
	n := int64(binary.BigEndian.Uint32(b))
	if n < 2 || n > maxCopied-prefixSize {
		return nil, nil, errNoRecord
	}
	if int64(len(b)) < prefixSize+n {
		return nil, b, nil
	}
	return b[: prefixSize+n : prefixSize+n], b[prefixSize+n:], nil
}

// NeedsNoCopy reports whether a record says that a segment's media needs no copy: it is stored, or forgotten.
func NeedsNoCopy(record []byte) bool {
	kind, _, _, _, err := next(record)
	return err == nil && (kind == kindStored || kind == kindForget)
}
