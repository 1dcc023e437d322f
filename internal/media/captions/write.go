package captions

import (
	"io"
	"strconv"
	"time"
)

// header begins a WebVTT file.
const header = "WEBVTT\n"

// Write writes the document as a WebVTT file.
func (d Document) Write(w io.Writer) error {
	_, err := w.Write(d.AppendVTT(nil))
	return err // the caller knows what it writes to
}

// AppendVTT appends the document as a WebVTT file. Parsing it gives the same document.
func (d Document) AppendVTT(dst []byte) []byte {
	dst = d.appendBlocks(append(dst, header...))
	for _, c := range d.cues {
		dst = appendCue(dst, c)
	}
	return dst
}

// Slice returns the WebVTT segment of the cues shown within [from, to), each whole and with its own times: a player
// knows a cue again that it got from the segment before (RFC 8216 3.5). mpegts is the media time, in 90 kHz, at which
// the document's time zero is presented. A segment without cues is a valid file too.
//
// The map is exact and never maps zero, see mapped. The clock of MPEG-2 has 33 bits and wraps after 26.5 hours; times
// of cues do not. Segments that begin behind a wrap map the first millisecond behind it.
func (d Document) Slice(from, to time.Duration, mpegts int64) []byte {
	local := int64(mapped)
	if past := (mpegts + int64(from)*ticksPerMs/int64(time.Millisecond)) &^ (wrap - 1); past > mpegts {
		local = (past - mpegts + ticksPerMs - 1) / ticksPerMs
	}
	dst := make([]byte, 0, 1024)
	dst = append(dst, "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:"...)
	dst = strconv.AppendInt(dst, (mpegts+local*ticksPerMs)&(wrap-1), 10)
	dst = appendTime(append(dst, ",LOCAL:"...), time.Duration(local)*time.Millisecond)
	dst = d.appendBlocks(append(dst, '\n'))
	head := len(dst)
	d.overlapping(from, to, func(c Cue) { dst = appendCue(dst, c) })
	if len(dst) == head {
		dst = appendCue(dst, Cue{Start: from, End: max(to, from+time.Millisecond)})
	}
	return dst
}

const (
	ticksPerMs = 90      // of MPEG-2's clock
	wrap       = 1 << 33 // its ticks
	// mapped is the cue time, in milliseconds, that X-TIMESTAMP-MAP maps. Where the MPEG-2 time of the map is that at
	// which a player's own time is zero, hls.js 1.7 takes the map for none, and shows cues late by the time of the
	// discontinuity in front of them. A player's time is zero where a segment begins, and none begins 7 ms after the
	// document's time zero.
	mapped = 7
)

func (d Document) appendBlocks(dst []byte) []byte {
	for _, b := range d.blocks {
		dst = append(append(append(dst, '\n'), b...), '\n')
	}
	return dst
}

func appendCue(dst []byte, c Cue) []byte {
	dst = append(dst, '\n')
	if c.ID != "" {
		dst = append(append(dst, c.ID...), '\n')
	}
	dst = appendTime(dst, c.Start)
	dst = append(dst, " --> "...)
	dst = appendTime(dst, c.End)
	if c.Settings != "" {
		dst = append(append(dst, ' '), c.Settings...)
	}
	dst = append(dst, '\n')
	dst = append(dst, c.Text...)
	return append(dst, '\n')
}
