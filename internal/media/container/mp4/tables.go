package mp4

import (
	"encoding/binary"
	"errors"
	"fmt"

	"millrace/internal/media/container/bmff"
)

// maxSamples bounds all tracks of a file together: 24 hours at 120 pictures per second and AAC have 14.4 million.
const maxSamples = 1 << 24

// errNoTables means that a track has no samples in its moov; a fragmented file's usually have none.
var errNoTables = errors.New("no sample tables")

// tables are the bodies of the boxes of a sample table, ISO 14496-12 section 8.5 to 8.7, cut to their entries.
type tables struct {
	stts, ctts, stss, stsc, chunks table
	sizes                          table
	hasSync                        bool
	wide                           bool   // chunk offsets have 64 bits
	sizeBits                       uint32 // of a size entry: 4, 8, 16 or 32
	fixedSize, count               uint32
	several                        bool // samples have several descriptions: found in place
}

// table is the entries of a full box, checked to lie in it.
type table struct {
	b []byte
	n int
}

func (t table) u32(entry, entrySize, at int) uint32 {
	return binary.BigEndian.Uint32(t.b[entry*entrySize+at:])
}

// entries reads version, flags, count and count entries of size bytes.
func entries(b bmff.Box, size int) (table, error) {
	r := bmff.NewReader(b.Body)
	r.Full()
	n := r.U32()
	if r.Err() != nil || uint64(n)*uint64(size) > uint64(len(r.Left())) {
		return table{}, bmff.Malformed("box %s claims %d entries, more than it holds", b.Type, n)
	}
	return table{b: r.Left(), n: int(n)}, nil
}

func readTables(stbl []byte) (tables, error) {
	t := tables{sizeBits: 32}
	err := bmff.Walk(stbl, func(b bmff.Box) (err error) {
		switch b.Type.String() {
		case "stts":
			t.stts, err = entries(b, 8)
		case "ctts":
			t.ctts, err = entries(b, 8)
		case "stss":
			t.hasSync = true
			t.stss, err = entries(b, 4)
		case "stsc":
			t.stsc, err = entries(b, 12)
		case "stco":
			t.chunks, err = entries(b, 4)
		case "co64":
			t.wide = true
			t.chunks, err = entries(b, 8)
		case "stsz", "stz2":
			err = t.sampleSizes(b)
		}
		return err
	})
	return t, err
}

func (t *tables) sampleSizes(b bmff.Box) error {
	r := bmff.NewReader(b.Body)
	r.Full()
	field := r.U32()
	t.count = r.U32()
	if b.Type.Is("stsz") {
		t.fixedSize, t.sizeBits = field, 32
	} else {
		t.fixedSize, t.sizeBits = 0, field&0xff
		if t.sizeBits != 4 && t.sizeBits != 8 && t.sizeBits != 16 {
			return bmff.Malformed("box stz2 has sizes of %d bits", t.sizeBits)
		}
	}
	need := (uint64(t.count)*uint64(t.sizeBits) + 7) / 8
	if r.Err() != nil || t.fixedSize == 0 && need > uint64(len(r.Left())) {
		return bmff.Malformed("box %s claims %d sizes, more than it holds", b.Type, t.count)
	}
	t.sizes = table{b: r.Left(), n: int(t.count)}
	return nil
}

func (t *tables) size(i int) uint32 {
	if t.fixedSize != 0 {
		return t.fixedSize
	}
	switch t.sizeBits {
	case 4:
		return uint32(t.sizes.b[i/2]>>(4-4*(i%2))) & 15
	case 8:
		return uint32(t.sizes.b[i])
	case 16:
		return uint32(binary.BigEndian.Uint16(t.sizes.b[2*i:]))
	}
	return t.sizes.u32(i, 4, 0)
}

func (t *tables) chunk(i int) uint64 {
	if t.wide {
		return binary.BigEndian.Uint64(t.chunks.b[8*i:])
	}
	return uint64(t.chunks.u32(i, 4, 0))
}

// build makes the samples of a track. fileSize bounds offsets and, with samples of one size, how many there can be.
// description is the index, from 1, of the first sample entry in use.
func (t *tables) build(fileSize int64, left int) (s samples, description uint32, err error) {
	if t.count == 0 {
		return samples{}, 0, errNoTables
	}
	if t.fixedSize != 0 && uint64(t.count)*uint64(t.fixedSize) > uint64(fileSize) {
		return samples{}, 0, bmff.Malformed("%d samples of %d bytes are more than the file has", t.count, t.fixedSize)
	}
	if int64(t.count) > int64(left) {
		return samples{}, 0, fmt.Errorf("%w: more than %d samples", ErrUnsupported, maxSamples)
	}
	n := int(t.count)
	s = samples{offsets: make([]int64, n), sizes: make([]uint32, n)}
	for i := range s.sizes {
		s.sizes[i] = t.size(i)
	}
	if description, err = t.place(&s, fileSize); err != nil {
		return samples{}, 0, err
	}
	if err := t.times(&s); err != nil {
		return samples{}, 0, err
	}
	t.compositions(&s)
	if t.hasSync {
		s.noSync(n)
		for i := range t.stss.n {
			if k := t.stss.u32(i, 4, 0); k >= 1 && int64(k) <= int64(n) {
				s.setSync(int(k - 1))
			}
		}
	}
	s.compact()
	return s, description, nil
}

// place fills the offsets from chunks, section 8.7.4.
func (t *tables) place(s *samples, fileSize int64) (description uint32, err error) {
	n, i := len(s.sizes), 0
	for e := 0; e < t.stsc.n && i < n; e++ {
		first, per, desc := t.stsc.u32(e, 12, 0), t.stsc.u32(e, 12, 4), t.stsc.u32(e, 12, 8)
		last := uint32(t.chunks.n)
		if e+1 < t.stsc.n {
			last = t.stsc.u32(e+1, 12, 0) - 1
		}
		if first == 0 || last < first && e+1 < t.stsc.n {
			return 0, bmff.Malformed("its chunks are not in order")
		}
		if description == 0 {
			description = desc
		}
		t.several = t.several || desc != description
		for c := first; c <= last && c <= uint32(t.chunks.n) && i < n; c++ {
			pos := t.chunk(int(c - 1))
			for k := uint32(0); k < per && i < n; k++ {
				if pos > uint64(fileSize) || uint64(s.sizes[i]) > uint64(fileSize)-pos {
					return 0, fmt.Errorf("%w: sample %d would lie beyond its end", ErrTruncated, i+1)
				}
				s.offsets[i] = int64(pos)
				pos += uint64(s.sizes[i])
				i++
			}
		}
	}
	if i < n {
		return 0, bmff.Malformed("sample %d of %d is in no chunk", i+1, n)
	}
	return description, nil
}

// times fills decoding times. Where the table is too short the last duration goes on, negative durations (old
// QuickTime) count as 1.
func (t *tables) times(s *samples) error {
	n := len(s.sizes)
	if t.stts.n == 0 {
		return bmff.Malformed("it has no decoding times")
	}
	delta := func(e int) uint32 {
		if d := t.stts.u32(e, 8, 4); int32(d) >= 0 {
			return d
		}
		return 1
	}
	if t.stts.n == 1 {
		s.step = delta(0)
		s.last = s.step
		return nil
	}
	s.dts = make([]int64, n)
	i, now := 0, int64(0)
	for e := 0; e < t.stts.n && i < n; e++ {
		s.last = delta(e)
		for c := t.stts.u32(e, 8, 0); c > 0 && i < n; c-- {
			s.dts[i] = now
			now += int64(s.last)
			i++
		}
	}
	for ; i < n; i++ {
		s.dts[i] = now
		now += int64(s.last)
	}
	return nil
}

// compositions fills the offsets. Version 0 is unsigned by the letter, but writers have always put negative ones there.
func (t *tables) compositions(s *samples) {
	i := 0
	for e := 0; e < t.ctts.n && i < len(s.sizes); e++ {
		v := int32(t.ctts.u32(e, 8, 4))
		for c := t.ctts.u32(e, 8, 0); c > 0 && i < len(s.sizes); c-- {
			if v != 0 && s.cts == nil {
				s.cts = make([]int32, len(s.sizes))
			}
			if v != 0 {
				s.cts[i] = v
			}
			i++
		}
	}
}
