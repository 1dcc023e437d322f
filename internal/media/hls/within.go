package hls

import (
	"bytes"
	"strconv"
	"time"
)

// Stretch is a part of a presentation: seconds from its first segment on, and times of day. Zero fields are no bounds.
type Stretch struct {
	From, To   float64
	Begin, End time.Time
}

// Within is a media playlist of a presentation that goes on, with the segments alone that have something of a stretch. It ends where the
// stretch does, once that is listed. It offers no delta updates: what they leave out is counted from the end of the whole. false: nothing
// of it is.
func Within(playlist []byte, s Stretch) ([]byte, bool) {
	w := within{s: s}
	for line := range bytes.Lines(playlist) {
		if w.line(line); w.over {
			break
		}
	}
	if w.kept == 0 {
		return nil, false
	}
	out := make([]byte, 0, len(playlist))
	for line := range bytes.Lines(w.head) {
		switch {
		case bytes.HasPrefix(line, mediaSequence):
			line = plus(line, mediaSequence, w.dropped)
		case bytes.HasPrefix(line, discontinuitySequence):
			line = plus(line, discontinuitySequence, w.breaks)
		case bytes.HasPrefix(line, serverControl):
			line = withoutSkips(line)
		}
		out = append(out, line...)
	}
	out = append(out, w.body...)
	if w.over {
		return append(out, "#EXT-X-ENDLIST\n"...), true
	}
	return append(out, w.block...), true // the open segment and what follows it
}

//nolint:gochecknoglobals // tags
var (
	mediaSequence         = []byte("#EXT-X-MEDIA-SEQUENCE:")
	discontinuitySequence = []byte("#EXT-X-DISCONTINUITY-SEQUENCE:")
	discontinuity         = []byte("#EXT-X-DISCONTINUITY\n")
	serverControl         = []byte("#EXT-X-SERVER-CONTROL:")
)

// within reads a playlist line by line.
type within struct {
	s                 Stretch
	head, block, body []byte
	mapped            []byte // the last EXT-X-MAP
	began             bool
	at, long          float64 // of the segment being read, in seconds
	start             time.Time
	broken, fresh     bool // it has EXT-X-DISCONTINUITY, EXT-X-MAP
	dropped, breaks   int
	kept              int
	over              bool
}

func (w *within) line(line []byte) {
	name, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(":"))
	switch string(name) {
	case "#EXT-X-DISCONTINUITY":
		w.began, w.broken = true, true
	case "#EXT-X-MAP":
		w.began, w.fresh, w.mapped = true, true, line
	case "#EXT-X-PROGRAM-DATE-TIME":
		w.began = true
		if t, err := time.Parse(time.RFC3339Nano, string(value)); err == nil {
			w.start = t
		}
	case "#EXTINF":
		w.began = true
		w.long, _ = strconv.ParseFloat(string(bytes.TrimSuffix(value, []byte(","))), 64) // we wrote it
	case "#EXT-X-GAP", "#EXT-X-PART":
		w.began = true
	}
	if !w.began {
		w.head = append(w.head, line...)
		return
	}
	w.block = append(w.block, line...)
	if line[0] != '#' {
		w.segment()
	}
}

// segment decides about a segment that is whole.
func (w *within) segment() {
	const slack = 1e-6 // of float rounding
	end := w.start.Add(time.Duration(w.long * float64(time.Second)))
	early := w.at+w.long <= w.s.From+slack || !w.s.Begin.IsZero() && !end.After(w.s.Begin)
	late := w.s.To > 0 && w.at >= w.s.To-slack || !w.s.End.IsZero() && !w.start.Before(w.s.End)
	switch {
	case late:
		w.over = true
	case early:
		w.dropped++
		if w.broken {
			w.breaks++
		}
	default:
		w.keep()
		w.over = w.s.To > 0 && w.at+w.long >= w.s.To-slack || !w.s.End.IsZero() && !end.Before(w.s.End)
	}
	w.at, w.start = w.at+w.long, end
	w.block, w.broken, w.fresh = nil, false, false
}

func (w *within) keep() {
	if w.kept++; w.kept > 1 {
		w.body = append(w.body, w.block...)
		return
	}
	if w.broken && w.dropped > 0 { // it counts as one that was in front
		w.breaks++
		w.block = bytes.Replace(w.block, discontinuity, nil, 1)
	}
	if !w.fresh {
		w.body = append(w.body, w.mapped...)
	}
	w.body = append(w.body, w.block...)
}

// withoutSkips is EXT-X-SERVER-CONTROL without the attribute that offers delta updates, section 4.4.3.8.
func withoutSkips(line []byte) []byte {
	var kept [][]byte
	for a := range bytes.SplitSeq(bytes.TrimSuffix(line[len(serverControl):], []byte{'\n'}), []byte{','}) {
		if !bytes.HasPrefix(a, []byte("CAN-SKIP-UNTIL=")) {
			kept = append(kept, a)
		}
	}
	return append(append(bytes.Clone(serverControl), bytes.Join(kept, []byte{','})...), '\n')
}

// plus adds to a tag's number.
func plus(line, tag []byte, n int) []byte {
	v, err := strconv.ParseInt(string(bytes.TrimSpace(line[len(tag):])), 10, 64)
	if err != nil {
		return line
	}
	return append(strconv.AppendInt(bytes.Clone(tag), v+int64(n), 10), '\n')
}
