package bmff

import (
	"slices"
	"strings"
)

// Track is what a trak box says about its track, but for the sample tables.
type Track struct {
	ID        uint32
	Handler   FourCC // "vide", "soun", "text", "sbtl", "subt", "tmcd", …
	Name      string // of the handler
	Timescale uint32 // ticks per second of the media, never 0
	Language  string // ISO 639-2/T, "" when undetermined
	// Width and Height as presented, 16.16 fixed point.
	Width, Height uint32
	Matrix        [9]uint32 // of the track header
	Edits         []Edit
	Entries       []SampleEntry
	// Tables is the body of the stbl box.
	Tables []byte
}

// Edit is an entry of an edit list.
type Edit struct {
	// Duration in the movie's timescale; 0 means to the end of the media.
	Duration uint64
	// MediaTime in the media's timescale; -1 is an empty edit.
	MediaTime int64
	// Rate as 16.16 fixed point, normally 0x10000.
	Rate uint32
}

// SampleEntry is an entry of the sample description box.
type SampleEntry struct {
	Type FourCC
	// Raw is the whole box.
	Raw []byte
}

const (
	maxEdits   = 1 << 16
	maxEntries = 64
	maxName    = 256
)

// Sideways reports whether a track header's matrix shows the width of a picture as its height: turned by a quarter,
// mirrored or not.
func Sideways(matrix [9]uint32) bool {
	return matrix[0] == 0 && matrix[4] == 0 && matrix[1] != 0 && matrix[3] != 0
}

// ParseTrack reads the body of a trak box. ErrMalformed when something without which the track can't be used is missing
// or contradicts itself.
func ParseTrack(trak []byte) (*Track, error) {
	t := &Track{}
	if err := t.header(Find(trak, "tkhd")); err != nil {
		return nil, err
	}
	mdia := Find(trak, "mdia")
	if err := t.media(mdia); err != nil {
		return nil, err
	}
	t.Tables = Find(mdia, "minf", "stbl")
	if t.Tables == nil {
		return nil, Malformed("track %d has no sample table", t.ID)
	}
	if err := t.edits(Find(trak, "edts", "elst")); err != nil {
		return nil, err
	}
	return t, t.entries(Find(t.Tables, "stsd"))
}

func (t *Track) header(tkhd []byte) error {
	r := NewReader(tkhd)
	version, _ := r.Full()
	r.Sized(version) // created
	r.Sized(version) // modified
	t.ID = r.U32()
	r.U32()
	r.Sized(version) // duration
	r.Skip(8 + 2 + 2 + 2 + 2)
	for i := range t.Matrix {
		t.Matrix[i] = r.U32()
	}
	t.Width, t.Height = r.U32(), r.U32()
	if r.Err() != nil || t.ID == 0 {
		return Malformed("a track has no usable header")
	}
	return nil
}

func (t *Track) media(mdia []byte) error {
	r := NewReader(Find(mdia, "mdhd"))
	version, _ := r.Full()
	r.Sized(version)
	r.Sized(version)
	t.Timescale = r.U32()
	r.Sized(version)
	t.Language = language(r.U16())
	if r.Err() != nil || t.Timescale == 0 {
		return Malformed("track %d has no usable media header", t.ID)
	}
	h := NewReader(Find(mdia, "hdlr"))
	h.Skip(8)
	copy(t.Handler[:], h.Bytes(4))
	if h.Err() != nil {
		return Malformed("track %d has no handler", t.ID)
	}
	h.Skip(12)
	t.Name = handlerName(h.Left())
	return nil
}

// language unpacks three letters of 5 bits each; QuickTime's Macintosh codes (below 0x400) are taken as undetermined.
func language(packed uint16) string {
	if packed < 0x400 || packed == 0x7fff {
		return ""
	}
	b := [3]byte{byte(packed>>10&31) + 0x60, byte(packed>>5&31) + 0x60, byte(packed&31) + 0x60}
	for _, c := range b {
		if c < 'a' || c > 'z' {
			return ""
		}
	}
	if s := string(b[:]); s != "und" {
		return s
	}
	return ""
}

// handlerName is a C string, or in QuickTime a Pascal string.
func handlerName(b []byte) string {
	if len(b) > 0 && int(b[0]) == len(b)-1 && b[0] < 0x20 {
		b = b[1:]
	}
	if i := slices.Index(b, 0); i >= 0 {
		b = b[:i]
	}
	if len(b) > maxName {
		b = b[:maxName]
	}
	return strings.ToValidUTF8(string(b), "")
}

func (t *Track) edits(elst []byte) error {
	if elst == nil {
		return nil
	}
	r := NewReader(elst)
	version, _ := r.Full()
	count := r.U32()
	size := 12
	if version == 1 {
		size = 20
	}
	if r.Err() != nil || count > maxEdits || uint64(count)*uint64(size) > uint64(len(r.Left())) {
		return Malformed("track %d has an edit list of %d entries that does not fit its box", t.ID, count)
	}
	t.Edits = make([]Edit, count)
	for i := range t.Edits {
		e := Edit{Duration: r.Sized(version)}
		if version == 1 {
			e.MediaTime = int64(r.U64())
		} else {
			e.MediaTime = int64(int32(r.U32()))
		}
		e.Rate = r.U32()
		t.Edits[i] = e
	}
	return nil
}

func (t *Track) entries(stsd []byte) error {
	r := NewReader(stsd)
	r.Full()
	count := r.U32()
	if r.Err() != nil || count > maxEntries {
		return Malformed("track %d has no usable sample description", t.ID)
	}
	for b := r.Left(); count > 0 && len(b) >= 8; count-- {
		box, rest, err := Next(b)
		if err != nil {
			return Malformed("track %d: its sample description is cut off", t.ID)
		}
		t.Entries = append(t.Entries, SampleEntry{Type: box.Type, Raw: box.Raw})
		b = rest
	}
	if len(t.Entries) == 0 {
		return Malformed("track %d has an empty sample description", t.ID)
	}
	return nil
}
