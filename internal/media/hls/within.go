package hls

import (
	"bytes"
	"strconv"
	"time"
)

// Clip is a part of a presentation: seconds from its first segment on, and times of day. Zero fields are no bounds.
type Clip struct {
	From, To   float64
	Begin, End time.Time
}

// Extent is which segments have something of a clip, by their media sequence numbers.
type Extent struct {
	first, last int64
	over        bool // the clip ends with the last one; else there may be more
}

// Find finds out what a clip of a presentation is in one of its playlists, which all others are cut like: sound is a
// little shorter or longer than the pictures that it belongs to. false: nothing of it is listed.
func Find(playlist []byte, c Clip) (e Extent, ok bool) {
	const slack = 1e-6 // of float rounding
	_, all := blocks(playlist)
	at, start := 0.0, time.Time{}
	for i, b := range all {
		if !b.start.IsZero() {
			start = b.start
		}
		ends := start.Add(time.Duration(b.long * float64(time.Second)))
		early := at+b.long <= c.From+slack || !c.Begin.IsZero() && !ends.After(c.Begin)
		late := c.To > 0 && at >= c.To-slack || !c.End.IsZero() && !start.Before(c.End)
		switch {
		case late:
			e.over = true
			return e, ok
		case !b.whole, early && !ok:
		default:
			if !ok && i > 0 {
				e.first = b.msn
			}
			e.last, ok = b.msn, true
			if e.over = c.To > 0 && at+b.long >= c.To-slack || !c.End.IsZero() && !ends.Before(c.End); e.over {
				return e, ok
			}
		}
		at, start = at+b.long, ends
	}
	return e, ok
}

// Within is a media playlist of a presentation that goes on, with the segments of an extent alone. It ends where the
// extent does, once that is listed. It offers no delta updates: what they leave out is counted from the end of the
// whole. false: nothing of it is.
func Within(playlist []byte, e Extent) ([]byte, bool) {
	head, all := blocks(playlist)
	var body, mapped []byte // mapped: the last EXT-X-MAP
	dropped, breaks, kept, over := 0, 0, 0, false
	for _, b := range all {
		if b.mapped != nil {
			mapped = b.mapped
		}
		switch {
		case over, b.msn > e.last && e.over, b.msn > e.last+1: // what is ahead of the others may be behind the end
		case b.whole && b.msn < e.first:
			if dropped++; b.broken {
				breaks++
			}
		default:
			if kept == 0 && b.broken && dropped > 0 { // it counts as one that was in front
				breaks++
				b.text = bytes.Replace(b.text, discontinuity, nil, 1)
			}
			if kept == 0 && b.mapped == nil {
				body = append(body, mapped...)
			}
			if body = append(body, b.text...); b.whole {
				kept++
			}
			over = e.over && b.whole && b.msn == e.last
		}
	}
	if kept == 0 {
		return nil, false
	}
	if over {
		body = append(body, "#EXT-X-ENDLIST\n"...)
	}
	return append(numbered(head, dropped, breaks), body...), true
}

// numbered is the head of a playlist from the front of which so many segments and discontinuities were taken.
func numbered(head []byte, dropped, breaks int) []byte {
	out := make([]byte, 0, len(head)+8)
	for line := range bytes.Lines(head) {
		switch {
		case bytes.HasPrefix(line, mediaSequence):
			line = plus(line, mediaSequence, dropped)
		case bytes.HasPrefix(line, discontinuitySequence):
			line = plus(line, discontinuitySequence, breaks)
		case bytes.HasPrefix(line, serverControl):
			line = withoutSkips(line)
		}
		out = append(out, line...)
	}
	return out
}

//nolint:gochecknoglobals // tags
var (
	mediaSequence         = []byte("#EXT-X-MEDIA-SEQUENCE:")
	discontinuitySequence = []byte("#EXT-X-DISCONTINUITY-SEQUENCE:")
	discontinuity         = []byte("#EXT-X-DISCONTINUITY\n")
	serverControl         = []byte("#EXT-X-SERVER-CONTROL:")
)

// block is a segment with its tags, or the open segment and all that follows it.
type block struct {
	msn    int64
	text   []byte
	mapped []byte    // EXT-X-MAP
	start  time.Time // zero: not said
	long   float64   // seconds
	broken bool      // it has EXT-X-DISCONTINUITY
	whole  bool
}

// blocks reads a playlist.
func blocks(playlist []byte) (head []byte, all []block) {
	b, began := block{}, false
	for line := range bytes.Lines(playlist) {
		name, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(":"))
		switch string(name) {
		case "#EXT-X-MEDIA-SEQUENCE":
			b.msn, _ = strconv.ParseInt(string(value), 10, 64) // we wrote it
		case "#EXT-X-DISCONTINUITY":
			began, b.broken = true, true
		case "#EXT-X-MAP":
			began, b.mapped = true, line
		case "#EXT-X-PROGRAM-DATE-TIME":
			began = true
			b.start, _ = time.Parse(time.RFC3339Nano, string(value))
		case "#EXTINF":
			began = true
			b.long, _ = strconv.ParseFloat(string(bytes.TrimSuffix(value, []byte(","))), 64)
		case "#EXT-X-GAP", "#EXT-X-PART":
			began = true
		}
		if !began {
			head = append(head, line...)
			continue
		}
		if b.text = append(b.text, line...); line[0] != '#' {
			b.whole = true
			all = append(all, b)
			b = block{msn: b.msn + 1}
		}
	}
	if len(b.text) > 0 {
		all = append(all, b)
	}
	return head, all
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
