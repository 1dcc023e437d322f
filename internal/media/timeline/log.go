package timeline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Encode gives an entry's stored form: one line of JSON without its newline.
func Encode(e Entry) []byte {
	b, err := json.Marshal(e)
	if err != nil {
		panic("a timeline entry is not JSON: " + err.Error()) // only numbers and strings in there
	}
	return b
}

// Decode reads what Encode gave.
func Decode(b []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(b, &e); err != nil {
		return e, fmt.Errorf("decode timeline entry: %w", err)
	}
	return e, nil
}

// WriteIndex writes a whole log, an entry a line: the object from which a finished asset is played.
func WriteIndex(w io.Writer, entries []Entry) error {
	out := bufio.NewWriter(w)
	for _, e := range entries {
		if _, err := out.Write(append(Encode(e), '\n')); err != nil {
			return fmt.Errorf("write timeline index: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write timeline index: %w", err)
	}
	return nil
}

// ReadIndex reads what WriteIndex wrote.
func ReadIndex(r io.Reader) ([]Entry, error) {
	var entries []Entry
	d := json.NewDecoder(r)
	for {
		var e Entry
		if err := d.Decode(&e); err != nil {
			if errors.Is(err, io.EOF) {
				return entries, nil
			}
			return nil, fmt.Errorf("read timeline index: %w", err)
		}
		entries = append(entries, e)
	}
}

// Build applies a whole log.
func Build(entries []Entry) (*Timeline, error) {
	t := &Timeline{}
	for _, e := range entries {
		if err := t.Apply(e); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Entries gives a log that builds t again.
func (t *Timeline) Entries() []Entry {
	var out []Entry
	if t.Target > 0 {
		out = append(out, Entry{Target: t.Target})
	}
	if t.Zero > 0 {
		out = append(out, Entry{Zero: t.Zero})
	}
	for _, l := range t.Renditions {
		out = append(out, Entry{Rendition: &l.RenditionInfo})
		for i := range l.Inits {
			out = append(out, Entry{Init: &l.Inits[i]})
		}
	}
	out = t.appendSegments(out, 0, len(t.Marks))
	if t.Tail == nil {
		return out
	}
	out = append(out, Entry{Over: true})
	for i, l := range t.Renditions {
		for k := len(l.Inits); k < len(t.Tail.Renditions[i].Inits); k++ {
			out = append(out, Entry{Init: &t.Tail.Renditions[i].Inits[k]})
		}
	}
	return t.Tail.appendSegments(out, 0, len(t.Tail.Marks))
}

// appendSegments appends the segments [from, to).
func (t *Timeline) appendSegments(out []Entry, from, to int) []Entry {
	for i := from; i < to; i++ {
		m := t.Marks[i]
		s := Segment{MSN: t.First + int64(i), Discontinuity: m.Discontinuity, Slate: m.Slate, Generation: m.Generation}
		if !m.Start.IsZero() {
			s.Start = m.Start.UnixMilli()
		}
		for _, l := range t.Renditions {
			s.Chunks = append(s.Chunks, l.Chunks[i])
		}
		out = append(out, Entry{Segment: &s})
	}
	return out
}
