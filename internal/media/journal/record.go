package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"millrace/internal/media/timeline"
)

// Record is one step of an open segment beside its parts. Exactly one of Init, Begin, End, Cut and Text is said; ticks
// are of the rendition's time scale.
type Record struct {
	// Init declares an init segment that is not recorded yet, and its rendition.
	Init      *timeline.Init          `json:"init,omitempty"`
	Rendition *timeline.RenditionInfo `json:"rendition,omitempty"`
	Number    int                     `json:"n,omitempty"` // of the init segment

	Begin         string `json:"begin,omitempty"` // rendition whose segment begins
	Generation    int64  `json:"gen,omitempty"`   // of the broadcast, in which it is published
	Start         int64  `json:"start,omitempty"` // wall clock, Unix milliseconds
	Discontinuity bool   `json:"disc,omitempty"`
	Slate         bool   `json:"slate,omitempty"`
	Use           int    `json:"use,omitempty"` // number of its init segment
	Time          int64  `json:"t,omitempty"`   // ticks

	End      string `json:"end,omitempty"` // rendition whose segment is whole
	Duration int64  `json:"d,omitempty"`   // of the whole, in ticks
	Parts    int    `json:"p,omitempty"`   // of the whole, or of what Cut leaves

	Cut string `json:"cut,omitempty"` // rendition of whose segment only the first Parts parts were published

	Text *timeline.Text `json:"text,omitempty"` // cues of a text rendition that are recorded with the segment

	Target int `json:"target,omitempty"` // EXT-X-TARGETDURATION, once it is known
}

// Segment is what a journal holds of one media sequence number.
type Segment struct {
	MSN        int64
	Generation int64 // of the broadcast, in which it was published
	Target     int   // seconds; 0: not known yet
	Stored     bool  // its media is in storage: of the parts only the lengths are left
	Renditions []*Rendition
	Texts      []timeline.Text // cues that are recorded with it
	torn       bool            // its records make no sense any more
	dir        string
}

// Rendition is a segment's media in one rendition.
type Rendition struct {
	Lengths

	ID            string
	Rendition     *timeline.RenditionInfo // nil: known before
	Inits         []Init                  // not recorded before
	Begun         bool
	Start         int64 // Unix milliseconds
	Discontinuity bool
	Slate         bool
	Use           int
	Time          int64 // ticks
	Parts         []Part
	Data          []byte // the parts' bytes, once they are loaded
	Whole         bool
	Duration      int64 // ticks, of the whole
	count         int   // parts of the whole
}

// Lengths say how long media lasts that is not there, in ticks; 0: that is not known.
type Lengths struct {
	Told int64 // players were told that the whole lasts so long
	Lost int64 // parts whose bytes are gone, where no part is left
}

// Init is an init segment with its bytes.
type Init struct {
	timeline.Init
	Number int
	Data   []byte
}

// Part is a part of a Rendition's Data, up to End; ticks are its length.
type Part struct {
	End         int64
	Ticks       int64
	Independent bool
	sum         uint32 // CRC-32C of its bytes
}

// Rendition finds a rendition, or nil.
func (s *Segment) Rendition(id string) *Rendition {
	for _, l := range s.Renditions {
		if l.ID == id {
			return l
		}
	}
	return nil
}

// Any reports whether there is media of the segment.
func (s *Segment) Any() bool {
	return slices.ContainsFunc(s.Renditions, func(l *Rendition) bool { return len(l.Parts) > 0 })
}

// Whole reports whether every rendition that has begun the segment has ended it.
func (s *Segment) Whole() bool {
	return !slices.ContainsFunc(s.Renditions, func(l *Rendition) bool { return l.Begun && !l.Whole })
}

func (s *Segment) rendition(id string) *Rendition {
	l := s.Rendition(id)
	if l == nil {
		l = &Rendition{ID: id}
		s.Renditions = append(s.Renditions, l)
	}
	return l
}

const (
	maxRenditions = 256
	maxTexts      = 1 << 16
	maxTicks      = 1 << 44 // years
	maxPart       = 256 << 20
)

var errOrder = errors.New("journal record out of order")

// replay adds what a record of the index says, unless something before it made no sense.
func (s *Segment) replay(kind byte, body []byte) {
	if kind == kindStored {
		s.Stored = true
		return
	}
	if !s.torn || kind == kindNote { // a later generation begins with a note
		s.torn = s.apply(kind, body) != nil || s.torn
	}
}

// apply adds what a record of the index says.
func (s *Segment) apply(kind byte, body []byte) error {
	if len(s.Renditions) >= maxRenditions {
		return errOrder
	}
	at := fields{b: body}
	switch kind {
	case kindNote:
		r, init, err := parseNote(body)
		if err != nil {
			return err
		}
		if r.Generation > s.Generation && r.Begin != "" &&
			slices.ContainsFunc(s.Renditions, func(l *Rendition) bool { return l.Begun }) {
			// the one before could not say that it had given it up
			*s = Segment{MSN: s.MSN, dir: s.dir, Renditions: s.unbegun(), Texts: s.Texts}
		}
		if s.torn && r.Init == nil && r.Text == nil {
			return errTorn
		}
		return s.note(&r, init)
	case kindPart:
		ticks, size, sum := at.number(), at.number(), at.number()
		l := s.Rendition(string(at.b))
		if at.bad || l == nil || !l.Begun || l.Whole || size > maxPart || ticks>>1 > maxTicks {
			return errOrder
		}
		l.Parts = append(l.Parts, Part{
			End:         l.end(len(l.Parts)) + size,
			Ticks:       ticks >> 1,
			Independent: ticks&1 != 0,
			sum:         uint32(sum),
		})
		return nil
	}
	return errTorn
}

// parseNote reads the body of a note, with the bytes of an init segment behind it.
func parseNote(body []byte) (r Record, init []byte, err error) {
	at := fields{b: body}
	n := at.number()
	if at.bad || n > int64(len(at.b)) || json.Unmarshal(at.b[:n], &r) != nil {
		return r, nil, errTorn
	}
	return r, at.b[n:], nil
}

// unbegun is what was declared of renditions, without media.
func (s *Segment) unbegun() []*Rendition {
	var out []*Rendition
	for _, l := range s.Renditions {
		if l.Rendition != nil {
			out = append(out, &Rendition{ID: l.ID, Rendition: l.Rendition, Inits: l.Inits})
		}
	}
	return out
}

func (s *Segment) note(r *Record, data []byte) error {
	if r.Target > 0 {
		s.Target = r.Target
	}
	if r.Duration < 0 || r.Duration > maxTicks || r.Parts < 0 {
		return errOrder
	}
	switch {
	case r.Text != nil:
		if !isName(r.Text.Rendition) || len(s.Texts) >= maxTexts {
			return errOrder
		}
		s.Texts = append(s.Texts, *r.Text)
		return nil
	case r.Init != nil && r.Rendition != nil && r.Rendition.ID == r.Init.Rendition && r.Rendition.Timescale > 0 &&
		r.Number >= 0 && isName(r.Rendition.ID):
		l := s.rendition(r.Rendition.ID)
		l.Rendition = r.Rendition
		l.Inits = append(l.Inits, Init{Init: *r.Init, Number: r.Number, Data: bytes.Clone(data)})
		return nil
	case r.Cut != "":
		if l := s.Rendition(r.Cut); l != nil {
			l.Keep(r.Parts)
		}
		return nil
	case r.Use >= 0 && r.Generation >= s.Generation && isName(r.Begin):
		l := s.rendition(r.Begin)
		if l.Begun {
			return fmt.Errorf("%s begins again: %w", r.Begin, errOrder)
		}
		s.Generation = r.Generation
		l.Begun, l.Start, l.Discontinuity, l.Slate, l.Use, l.Time = true, r.Start, r.Discontinuity, r.Slate, r.Use,
			r.Time
		return nil
	case r.End != "":
		l := s.Rendition(r.End)
		if l == nil || !l.Begun || l.Whole {
			return fmt.Errorf("end of %s: %w", r.End, errOrder)
		}
		l.Whole, l.Duration, l.count = true, r.Duration, r.Parts
		return nil
	}
	return errOrder
}

// isName reports whether a rendition may be part of a file's name.
func isName(id string) bool {
	return id != "" && len(id) <= 100 && !strings.ContainsAny(id, "/\\\x00") && id[0] != '.'
}

// Load reads the parts' bytes, once. Where they are not those that were written, or gone, the rendition ends.
func (s *Segment) Load() {
	for _, l := range s.Renditions {
		if len(l.Parts) == 0 {
			continue
		}
		long := l.Ticks()
		f, err := os.Open(filepath.Join(s.dir, mediaName(s.MSN, l.ID))) // an ID is no path: isName
		if err != nil {
			l.Keep(0)
		} else {
			l.load(f)
			_ = f.Close() // it was only read
		}
		if len(l.Parts) == 0 { // the index says how long it was
			l.Lost = long
		}
	}
}

func (r *Rendition) load(f *os.File) {
	info, err := f.Stat()
	if err != nil {
		r.Keep(0)
		return
	}
	whole := 0
	for whole < len(r.Parts) && r.Parts[whole].End <= info.Size() {
		whole++
	}
	r.Data = make([]byte, r.end(whole))
	if _, err := f.ReadAt(r.Data, 0); err != nil && len(r.Data) > 0 {
		whole = 0
	}
	for k := range whole {
		if p := r.Parts[k]; crc32.Checksum(r.Data[r.end(k):p.End], castagnoli()) != p.sum {
			whole = k
			break
		}
	}
	r.Keep(whole)
	for k := range r.Parts {
		r.Parts[k].sum = 0 // it was checked
	}
}

// end is where the first n parts end.
func (r *Rendition) end(n int) int64 {
	if n == 0 {
		return 0
	}
	return r.Parts[n-1].End
}

// Ticks is how long the rendition's parts last, or the whole if that is longer.
func (r *Rendition) Ticks() int64 {
	var sum int64
	for _, p := range r.Parts {
		sum += p.Ticks
	}
	return max(sum, r.Duration)
}

// Keep drops the parts from n on.
func (r *Rendition) Keep(n int) {
	if n >= len(r.Parts) {
		return
	}
	r.Whole, r.Duration = false, 0
	r.Parts = r.Parts[:n]
	r.Data = r.Data[:min(r.end(n), int64(len(r.Data)))]
}
