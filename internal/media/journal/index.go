package journal

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// A stored record is its length and the CRC-32C of the rest, 4 bytes each, big-endian; its kind, one byte; the media
// sequence number, as are all numbers behind it an unsigned varint. Then, of a note: the length of a Record as JSON,
// that, the bytes of an init segment. Of a part: its ticks times two, one more if it is independent; its bytes; their
// CRC-32C; the rendition's ID. Nothing follows in the other two: the segment's media is stored, so that only the
// lengths of its parts count; what was said of the number before is void.
const (
	prefixSize = 8
	maxRecord  = 16 << 20
	kindNote   = 'n'
	kindPart   = 'p'
	kindStored = 's'
	kindForget = 'f'
	kindLate   = 'l' // in memory alone, see late.go
)

var errTorn = errors.New("torn record")

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// appendNote appends a record to b.
func appendNote(b []byte, msn int64, r *Record, init []byte) []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic("a journal record is not JSON: " + err.Error()) // only numbers and strings in there
	}
	from := len(b)
	b = append(b, make([]byte, prefixSize)...)
	b = binary.AppendUvarint(append(b, kindNote), uint64(msn))
	b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	b = append(b, init...)
	return seal(b, from)
}

// appendPart appends the record of a part to b.
func appendPart(b []byte, m *Media, p Part, data []byte) []byte {
	from := len(b)
	b = append(b, make([]byte, prefixSize)...)
	b = binary.AppendUvarint(append(b, kindPart), uint64(m.msn))
	ticks := uint64(p.Ticks) << 1
	if p.Independent {
		ticks |= 1
	}
	b = binary.AppendUvarint(b, ticks)
	b = binary.AppendUvarint(b, uint64(len(data)))
	b = binary.AppendUvarint(b, uint64(crc32.Checksum(data, castagnoli())))
	return seal(append(b, m.rendition...), from)
}

// appendWord appends a record that has nothing but its kind and number.
func appendWord(b []byte, kind byte, msn int64) []byte {
	from := len(b)
	b = append(b, make([]byte, prefixSize)...)
	return seal(binary.AppendUvarint(append(b, kind), uint64(msn)), from)
}

// seal fills in what is in front of a record.
func seal(b []byte, from int) []byte {
	body := b[from+prefixSize:]
	binary.BigEndian.PutUint32(b[from:], uint32(len(body)))
	binary.BigEndian.PutUint32(b[from+4:], crc32.Checksum(body, castagnoli()))
	return b
}

// next cuts the first record off b; errTorn at one that is not whole, io.EOF at the end.
func next(b []byte) (kind byte, msn int64, body, rest []byte, err error) {
	if len(b) == 0 {
		return 0, 0, nil, nil, io.EOF
	}
	if len(b) < prefixSize {
		return 0, 0, nil, nil, errTorn
	}
	n := int64(binary.BigEndian.Uint32(b))
	if n < 2 || n > maxRecord || n > int64(len(b)-prefixSize) {
		return 0, 0, nil, nil, errTorn
	}
	body, rest = b[prefixSize:][:n], b[prefixSize+n:]
	if crc32.Checksum(body, castagnoli()) != binary.BigEndian.Uint32(b[4:]) {
		return 0, 0, nil, nil, errTorn
	}
	at := fields{b: body[1:]}
	msn = at.number()
	if at.bad {
		return 0, 0, nil, nil, errTorn
	}
	return body[0], msn, at.b, rest, nil
}

// fields reads numbers one after the other.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) number() int64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 || v > 1<<62 {
		f.bad = true
		return 0
	}
	f.b = f.b[n:]
	return int64(v)
}

// index is the file of records. All but read is Run's.
type index struct {
	dir     string
	file    *os.File
	size    int64           // of what is whole in the file: the rest is cut off when it is opened
	live    map[int64]int64 // bytes by segment, of those that are not forgotten
	pending []byte          // records that come with the next one
}

const (
	indexName = "index"
	freshName = "index.new"
	maxDead   = 64 << 10 // bytes of forgotten segments in the index
)

// read reads what is there, up to what is torn or makes no sense.
func (idx *index) read() ([]*Segment, error) {
	data, err := os.ReadFile(filepath.Join(idx.dir, indexName))
	if err != nil {
		return nil, err
	}
	var all []*Segment
	for rest := data; ; {
		kind, msn, body, behind, end := next(rest)
		if end != nil { // whatever it is: what comes before it counts
			break
		}
		n := int64(len(rest) - len(behind))
		idx.size += n
		rest = behind
		i, found := find(all, msn)
		if kind == kindForget {
			delete(idx.live, msn)
			if found {
				all = slices.Delete(all, i, i+1)
			}
			continue
		}
		idx.live[msn] += n
		if !found {
			all = slices.Insert(all, i, &Segment{MSN: msn, dir: idx.dir})
		}
		all[i].replay(kind, body)
	}
	return all, nil //nolint:nilerr // what is torn is no failure
}

// find is the place of a segment among others, in order of media sequence numbers.
func find(all []*Segment, msn int64) (at int, found bool) {
	return slices.BinarySearchFunc(all, msn, func(s *Segment, msn int64) int { return cmp.Compare(s.MSN, msn) })
}

// append writes a record, or lets it wait for the next one.
func (idx *index) append(msn int64, record []byte, late bool) error {
	if idx.file == nil {
		if err := idx.open(); err != nil {
			return err
		}
	}
	idx.pending = append(idx.pending, record...)
	idx.live[msn] += int64(len(record))
	if late {
		return nil
	}
	if _, err := idx.file.WriteAt(idx.pending, idx.size); err != nil { // what was written of it is written over
		idx.pending = idx.pending[:len(idx.pending)-len(record)]
		if len(idx.pending) > maxDead {
			idx.pending = nil
		}
		return err
	}
	idx.size += int64(len(idx.pending))
	idx.pending = idx.pending[:0]
	return nil
}

// stored notes that a segment's media is stored.
func (idx *index) stored(msn int64) error {
	if _, known := idx.live[msn]; !known {
		return nil
	}
	return idx.append(msn, appendWord(nil, kindStored, msn), false)
}

// forget notes that a segment's records are of no use any more, also for a reader after a crash, and leaves them out of
// a new file when there are many such.
func (idx *index) forget(msn int64) error {
	if _, known := idx.live[msn]; !known {
		return nil
	}
	err := idx.append(msn, appendWord(nil, kindForget, msn), false)
	delete(idx.live, msn)
	if err != nil {
		return err
	}
	return idx.clear()
}

// clear writes the index again without what is forgotten, once that is a lot.
func (idx *index) clear() error {
	dead := idx.size
	for _, n := range idx.live {
		dead -= n
	}
	if dead < maxDead || idx.file == nil {
		return nil
	}
	all := make([]byte, idx.size)
	if _, err := idx.file.ReadAt(all, 0); err != nil {
		return err
	}
	return idx.replace(idx.kept(all))
}

// kept is what counts of an index: of a number that was forgotten and is used again, what came behind that.
func (idx *index) kept(all []byte) []byte {
	void := map[int64]int{} // offsets up to which records of a number are void
	for rest := all; ; {
		kind, msn, _, behind, err := next(rest)
		if err != nil {
			break
		}
		rest = behind
		if kind == kindForget {
			void[msn] = len(all) - len(rest)
		}
	}
	var kept []byte
	for rest := all; ; {
		_, msn, _, behind, err := next(rest)
		if err != nil {
			break
		}
		if _, ok := idx.live[msn]; ok && len(all)-len(rest) >= void[msn] {
			kept = append(kept, rest[:len(rest)-len(behind)]...)
		}
		rest = behind
	}
	return kept
}

// replace puts another file into the place of this one; until it is whole this one counts.
func (idx *index) replace(data []byte) error {
	name := filepath.Join(idx.dir, freshName)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600) //nolint:gosec // our own name
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = os.Rename(name, filepath.Join(idx.dir, indexName))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	idx.close()
	idx.file, idx.size = f, int64(len(data))
	return nil
}

func (idx *index) open() error {
	f, err := os.OpenFile(filepath.Join(idx.dir, indexName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	if err := f.Truncate(idx.size); err != nil {
		return errors.Join(fmt.Errorf("cut journal: %w", err), f.Close())
	}
	idx.file = f
	return nil
}

func (idx *index) close() {
	if idx.file != nil {
		_ = idx.file.Close() // nothing is buffered
		idx.file = nil
	}
}
