package journal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"millrace/internal/media/timeline"
)

// Record is one step of an open segment. Exactly one of Init, Begin, Part and End is said; ticks are of the rendition's time scale.
type Record struct {
	// Init declares an init segment that is not recorded yet, and its rendition; the data are its bytes.
	Init      *timeline.Init      `json:"init,omitempty"`
	Rendition *timeline.Rendition `json:"rendition,omitempty"`
	Number    int                 `json:"n,omitempty"` // of the init segment

	Begin         string `json:"begin,omitempty"` // rendition whose segment begins
	Start         int64  `json:"start,omitempty"` // wall clock, Unix milliseconds
	Discontinuity bool   `json:"disc,omitempty"`
	Slate         bool   `json:"slate,omitempty"`
	Use           int    `json:"use,omitempty"` // number of its init segment
	Time          int64  `json:"t,omitempty"`   // ticks

	Part        string `json:"part,omitempty"` // rendition whose next part the data are
	Independent bool   `json:"k,omitempty"`

	End string `json:"end,omitempty"` // rendition whose segment is whole

	Duration int64 `json:"d,omitempty"`      // of a part or of the whole, in ticks
	Target   int   `json:"target,omitempty"` // EXT-X-TARGETDURATION, once it is known
}

// A stored record is 12 bytes (length of the header, length of the data, CRC-32C of both, big-endian), the header as JSON, the data.
const (
	prefixSize = 12
	maxHeader  = 64 << 10
	maxData    = 256 << 20
)

var errTorn = errors.New("torn record")

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// appendHead appends a record without its data to b.
func appendHead(b []byte, r *Record, data []byte) []byte {
	head, err := json.Marshal(r)
	if err != nil {
		panic("a journal record is not JSON: " + err.Error()) // only numbers and strings in there
	}
	sum := crc32.Update(crc32.Checksum(head, castagnoli()), castagnoli(), data)
	b = binary.BigEndian.AppendUint32(b, uint32(len(head)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	b = binary.BigEndian.AppendUint32(b, sum)
	return append(b, head...)
}

// next reads a record of something that has `left` bytes more; errTorn at one that is not whole, io.EOF at the end.
func next(r io.Reader, left int64) (rec Record, data []byte, size int64, err error) {
	var prefix [prefixSize]byte
	if left == 0 {
		return rec, nil, 0, io.EOF
	}
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return rec, nil, 0, errTorn
	}
	h, d := int64(binary.BigEndian.Uint32(prefix[:])), int64(binary.BigEndian.Uint32(prefix[4:]))
	if size = prefixSize + h + d; h > maxHeader || d > maxData || size > left {
		return rec, nil, 0, errTorn
	}
	body := make([]byte, h+d)
	if _, err := io.ReadFull(r, body); err != nil {
		return rec, nil, 0, errTorn
	}
	if crc32.Checksum(body, castagnoli()) != binary.BigEndian.Uint32(prefix[8:]) {
		return rec, nil, 0, errTorn
	}
	if err := json.Unmarshal(body[:h], &rec); err != nil {
		return rec, nil, 0, errTorn
	}
	return rec, body[h:], size, nil
}

// Segment is what a journal holds of one media sequence number.
type Segment struct {
	MSN    int64
	Target int // seconds; 0: not known yet
	Lanes  []*Lane
}

// Lane is a segment's media in one rendition.
type Lane struct {
	ID            string
	Rendition     *timeline.Rendition // nil: known before
	Inits         []Init              // not recorded before
	Begun         bool
	Start         int64 // Unix milliseconds
	Discontinuity bool
	Slate         bool
	Use           int
	Time          int64 // ticks
	Parts         []Part
	Data          []byte // the parts' bytes
	Whole         bool
	Duration      int64 // ticks, of the whole
}

// Init is an init segment with its bytes.
type Init struct {
	timeline.Init
	Number int
	Data   []byte
}

// Part is a part of a Lane's Data, up to End; ticks are its length.
type Part struct {
	End         int64
	Ticks       int64
	Independent bool
}

// Lane finds a rendition, or nil.
func (s *Segment) Lane(id string) *Lane {
	for _, l := range s.Lanes {
		if l.ID == id {
			return l
		}
	}
	return nil
}

func (s *Segment) lane(id string) *Lane {
	l := s.Lane(id)
	if l == nil {
		l = &Lane{ID: id}
		s.Lanes = append(s.Lanes, l)
	}
	return l
}

const (
	maxLanes = 256
	maxTicks = 1 << 44 // years
)

// read reads a segment up to what is torn or makes no sense; size is that of the whole.
func read(r io.Reader, size, msn int64) *Segment {
	s := &Segment{MSN: msn}
	for {
		rec, data, n, err := next(r, size)
		if err != nil || s.apply(&rec, data) != nil {
			return s
		}
		size -= n
	}
}

var errOrder = errors.New("journal record out of order")

func (s *Segment) apply(r *Record, data []byte) error {
	if r.Target > 0 {
		s.Target = r.Target
	}
	if len(s.Lanes) >= maxLanes || r.Duration < 0 || r.Duration > maxTicks {
		return errOrder
	}
	switch {
	case r.Init != nil && r.Rendition != nil && r.Rendition.ID == r.Init.Rendition && r.Rendition.Timescale > 0 && r.Number >= 0:
		l := s.lane(r.Rendition.ID)
		l.Rendition = r.Rendition
		l.Inits = append(l.Inits, Init{Init: *r.Init, Number: r.Number, Data: data})
		return nil
	case r.Begin != "" && r.Use >= 0:
		l := s.lane(r.Begin)
		if l.Begun {
			return fmt.Errorf("%s begins again: %w", r.Begin, errOrder)
		}
		l.Begun, l.Start, l.Discontinuity, l.Slate, l.Use, l.Time = true, r.Start, r.Discontinuity, r.Slate, r.Use, r.Time
		return nil
	case r.Part != "":
		l := s.Lane(r.Part)
		if l == nil || !l.Begun || l.Whole {
			return fmt.Errorf("part of %s: %w", r.Part, errOrder)
		}
		l.Data = append(l.Data, data...)
		l.Parts = append(l.Parts, Part{End: int64(len(l.Data)), Ticks: r.Duration, Independent: r.Independent})
		return nil
	case r.End != "":
		l := s.Lane(r.End)
		if l == nil || !l.Begun || l.Whole {
			return fmt.Errorf("end of %s: %w", r.End, errOrder)
		}
		l.Whole, l.Duration = true, r.Duration
		return nil
	}
	return errOrder
}

// Ticks is how long the lane's parts last, or the whole if that is longer.
func (l *Lane) Ticks() int64 {
	var sum int64
	for _, p := range l.Parts {
		sum += p.Ticks
	}
	return max(sum, l.Duration)
}

// Keep drops the parts from n on.
func (l *Lane) Keep(n int) {
	if n >= len(l.Parts) {
		return
	}
	l.Whole, l.Duration = false, 0
	l.Parts = l.Parts[:n]
	end := int64(0)
	if n > 0 {
		end = l.Parts[n-1].End
	}
	l.Data = l.Data[:end]
}

// Clear drops the parts of every rendition.
func (s *Segment) Clear() {
	for _, l := range s.Lanes {
		l.Keep(0)
	}
}
