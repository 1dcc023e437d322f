package captions

import (
	"io"
	"strconv"
	"time"
)

// Write writes the document as a WebVTT file.
func (d Document) Write(w io.Writer) error {
	_, err := w.Write(d.AppendVTT(nil))
	return err // the caller knows what it writes to
}

// AppendVTT appends the document as a WebVTT file. Parsing it gives the same document.
func (d Document) AppendVTT(dst []byte) []byte {
	dst = d.appendBlocks(append(dst, "WEBVTT\n"...))
	for _, c := range d.cues {
		dst = appendCue(dst, c)
	}
	return dst
}

// Slice returns the WebVTT segment of the cues shown within [from, to), each whole and with its own times: a player knows a
// cue again that it got from the segment before (RFC 8216 3.5). mpegts is the media time, in 90 kHz, at which the document's
// time zero is presented; it is written modulo 2^33. A segment without cues is a valid file too.
func (d Document) Slice(from, to time.Duration, mpegts int64) []byte {
	dst := make([]byte, 0, 1024)
	dst = append(dst, "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:"...)
	dst = strconv.AppendInt(dst, mpegts&(1<<33-1), 10)
	dst = append(dst, ",LOCAL:00:00:00.000\n"...)
	dst = d.appendBlocks(dst)
	d.overlapping(from, to, func(c Cue) { dst = appendCue(dst, c) })
	return dst
}

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
