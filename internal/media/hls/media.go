// Package hls models and writes HLS playlists, RFC 8216bis. Values in, bytes out: no files, sockets or clock.
package hls

import (
	"strconv"
	"time"
)

// Type is EXT-X-PLAYLIST-TYPE, section 4.4.3.5.
type Type string

// The types; a sliding live playlist has none.
const (
	Sliding Type = ""
	Event   Type = "EVENT"
	VOD     Type = "VOD"
)

// Media is a media playlist, section 4.4.2 ff.
type Media struct {
	Type                  Type
	TargetDuration        int           // seconds, EXT-X-TARGETDURATION
	PartTarget            time.Duration // EXT-X-PART-INF; 0: no parts
	PartHoldBack          time.Duration // PART-HOLD-BACK, where other renditions have parts too; 0: by PartTarget
	CanBlock              bool          // CAN-BLOCK-RELOAD
	SkipUntil             time.Duration // CAN-SKIP-UNTIL; 0: no delta updates
	MediaSequence         int64         // of Segments[0], or of the first skipped one
	DiscontinuitySequence int64
	// Continuous: no segment that is listed or left out is behind a discontinuity, and no earlier one is. Then there is
	// no EXT-X-DISCONTINUITY-SEQUENCE. Shaka 5.2.12 gives parts none, and shows text of segments that have one only
	// once a whole segment of the picture has come: it is for text beside parts.
	Continuous  bool
	Independent bool   // EXT-X-INDEPENDENT-SEGMENTS
	Skipped     int    // EXT-X-SKIP: how many segments from the front this delta update leaves out
	Rendered    []byte // text of the segments in front of Segments, as AppendSegment gave it
	Segments    []Segment
	Open        *Segment // the segment being written, with its parts; nil: none
	Hint        string   // EXT-X-PRELOAD-HINT: URI of the next part; empty: none
	Reports     []Report
	Ended       bool // EXT-X-ENDLIST
}

// Segment is one media segment with the tags in front of it.
type Segment struct {
	URI             string
	Duration        time.Duration
	ProgramDateTime time.Time // zero: none
	Discontinuity   bool
	Map             string // EXT-X-MAP URI if it differs from the segment's before; empty: the same
	Gap             bool
	Parts           []Part
}

// Part is one partial segment, section 4.4.4.9.
type Part struct {
	URI         string
	Duration    time.Duration
	Independent bool
}

// Report is EXT-X-RENDITION-REPORT, section 4.4.5.4.
type Report struct {
	URI      string
	LastMSN  int64
	LastPart int // -1: the rendition has no parts
}

// Version is the least EXT-X-VERSION that the playlist needs, section 8. One that offers delta updates has the version
// of these, so that a client which joins them finds one version.
func (m *Media) Version() int {
	switch {
	case m.Skipped > 0 || m.SkipUntil > 0:
		return 9
	default:
		return 7 // EXT-X-MAP in a playlist without I-frames-only: 6; fMP4 is widely expected at 7
	}
}

// Append appends the playlist's text to b.
func (m *Media) Append(b []byte) []byte {
	b = append(b, "#EXTM3U\n#EXT-X-VERSION:"...)
	b = strconv.AppendInt(b, int64(m.Version()), 10)
	b = append(b, "\n#EXT-X-TARGETDURATION:"...)
	b = strconv.AppendInt(b, int64(m.TargetDuration), 10)
	b = append(b, '\n')
	if m.Type != Sliding {
		b = append(b, "#EXT-X-PLAYLIST-TYPE:"...)
		b = append(b, m.Type...)
		b = append(b, '\n')
	}
	if m.Independent {
		b = append(b, "#EXT-X-INDEPENDENT-SEGMENTS\n"...)
	}
	b = m.appendServerControl(b)
	if m.PartTarget > 0 {
		b = append(b, "#EXT-X-PART-INF:PART-TARGET="...)
		b = appendSeconds(b, m.PartTarget)
		b = append(b, '\n')
	}
	b = append(b, "#EXT-X-MEDIA-SEQUENCE:"...)
	b = strconv.AppendInt(b, m.MediaSequence, 10)
	if !m.Continuous {
		b = append(b, "\n#EXT-X-DISCONTINUITY-SEQUENCE:"...)
		b = strconv.AppendInt(b, m.DiscontinuitySequence, 10)
	}
	b = append(b, '\n')
	if m.Skipped > 0 {
		b = append(b, "#EXT-X-SKIP:SKIPPED-SEGMENTS="...)
		b = strconv.AppendInt(b, int64(m.Skipped), 10)
		b = append(b, '\n')
	}
	b = append(b, m.Rendered...)
	for i := range m.Segments {
		b = AppendSegment(b, &m.Segments[i])
	}
	if m.Open != nil {
		b = m.Open.append(b, false)
	}
	return m.appendTail(b)
}

// HoldBack is the PART-HOLD-BACK that goes with the longest part target of all renditions: three times as much, section
// 4.4.3.8, and a little more, because players round.
func HoldBack(longest time.Duration) time.Duration { return 3*longest + longest/10 }

func (m *Media) partHoldBack() time.Duration { return max(m.PartHoldBack, HoldBack(m.PartTarget)) }

// appendServerControl writes EXT-X-SERVER-CONTROL, section 4.4.3.8.
func (m *Media) appendServerControl(b []byte) []byte {
	hold := m.partHoldBack()
	if !m.CanBlock && m.SkipUntil == 0 && hold == 0 {
		return b
	}
	b = append(b, "#EXT-X-SERVER-CONTROL:"...)
	sep := ""
	if m.CanBlock {
		b, sep = append(b, "CAN-BLOCK-RELOAD=YES"...), ","
	}
	if m.SkipUntil > 0 {
		b = append(append(b, sep...), "CAN-SKIP-UNTIL="...)
		b, sep = appendSeconds(b, m.SkipUntil), ","
	}
	if hold > 0 {
		b = append(append(b, sep...), "PART-HOLD-BACK="...)
		b, sep = appendSeconds(b, hold), ","
	}
	b = append(append(b, sep...), "HOLD-BACK="...)
	b = appendSeconds(b, time.Duration(3*m.TargetDuration)*time.Second)
	return append(b, '\n')
}

func (m *Media) appendTail(b []byte) []byte {
	if m.Ended {
		return append(b, "#EXT-X-ENDLIST\n"...)
	}
	if m.Hint != "" {
		b = append(b, "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\""...)
		b = append(b, m.Hint...)
		b = append(b, "\"\n"...)
	}
	for _, r := range m.Reports {
		b = append(b, "#EXT-X-RENDITION-REPORT:URI=\""...)
		b = append(b, r.URI...)
		b = append(b, "\",LAST-MSN="...)
		b = strconv.AppendInt(b, r.LastMSN, 10)
		if r.LastPart >= 0 {
			b = append(b, ",LAST-PART="...)
			b = strconv.AppendInt(b, int64(r.LastPart), 10)
		}
		b = append(b, '\n')
	}
	return b
}

// AppendSegment appends the text of one whole segment: it never changes, so a growing playlist can keep it.
func AppendSegment(b []byte, s *Segment) []byte { return s.append(b, true) }

func (s *Segment) append(b []byte, whole bool) []byte {
	if s.Discontinuity {
		b = append(b, "#EXT-X-DISCONTINUITY\n"...)
	}
	if s.Map != "" {
		b = append(b, "#EXT-X-MAP:URI=\""...)
		b = append(b, s.Map...)
		b = append(b, "\"\n"...)
	}
	if !s.ProgramDateTime.IsZero() {
		b = append(b, "#EXT-X-PROGRAM-DATE-TIME:"...)
		b = s.ProgramDateTime.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
		b = append(b, '\n')
	}
	if s.Gap {
		b = append(b, "#EXT-X-GAP\n"...)
	}
	for i := range s.Parts {
		p := &s.Parts[i]
		b = append(b, "#EXT-X-PART:DURATION="...)
		b = appendSeconds(b, p.Duration)
		b = append(b, ",URI=\""...)
		b = append(b, p.URI...)
		b = append(b, '"')
		if p.Independent {
			b = append(b, ",INDEPENDENT=YES"...)
		}
		b = append(b, '\n')
	}
	if whole {
		b = append(b, "#EXTINF:"...)
		b = appendSeconds(b, s.Duration)
		b = append(b, ",\n"...)
		b = append(b, s.URI...)
		b = append(b, '\n')
	}
	return b
}

// appendSeconds writes a decimal-floating-point with microseconds, rounded; no binary float is involved. It has no
// sign, section 4.2.
func appendSeconds(b []byte, d time.Duration) []byte {
	us := int64((max(d, 0) + 500*time.Nanosecond) / time.Microsecond)
	b = strconv.AppendInt(b, us/1e6, 10)
	b = append(b, '.')
	frac := us % 1e6
	for div := int64(1e5); div > 0; div /= 10 {
		b = append(b, byte('0'+frac/div%10))
	}
	return b
}
