package hls

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Multivariant is a multivariant playlist, section 4.4.6.
type Multivariant struct {
	Independent bool // EXT-X-INDEPENDENT-SEGMENTS
	Renditions  []Rendition
	Variants    []Variant
	Spare       []Variant // not listed: what can be played beside Variants, and takes hardly less
	Tiles       *Tiles    // the image playlist for trick play; nil: none is offered
	TilesURI    string
	SessionKeys []byte // lines EXT-X-SESSION-KEY, as Key.Append writes them; empty: what is listed is not encrypted
	ChaptersURI string // of JSON chapters (EXT-X-SESSION-DATA, section 4.4.6.4); empty: there are none
}

// Rendition is EXT-X-MEDIA, section 4.4.6.1.
type Rendition struct {
	Type            string // AUDIO, SUBTITLES
	GroupID         string
	Name            string
	Language        string // RFC 5646; empty: unknown
	Default         bool
	Autoselect      bool
	Forced          bool   // SUBTITLES: to be shown to those who want none
	Characteristics string // "public.accessibility.transcribes-spoken-dialog,…"
	Channels        int    // audio; 0: unknown
	URI             string
}

// Variant is EXT-X-STREAM-INF, section 4.4.6.2.
type Variant struct {
	Bandwidth        int64 // bits per second, peak
	AverageBandwidth int64
	Codecs           []string
	Width, Height    int     // 0: no video
	FrameRate        float64 // 0: unknown
	Range            string  // VIDEO-RANGE: PQ or HLG; empty: not said, which means SDR
	Audio, Subtitles string  // group IDs
	NoCaptions       bool    // CLOSED-CAPTIONS=NONE; if one variant says it all have to
	URI              string
}

// Picture is a rendition of video by its size, whether a playlist lists it or not.
type Picture struct {
	Rendition string
	Short     int      // shorter side, in pixels, of the largest picture that it has had
	Codecs    []string // RFC 6381 names of all that it has had
	Offered   bool     // it is one of Variants or Spare
}

// Short is the shorter side of a variant's picture in pixels; 0: it has none.
func (v *Variant) Short() int { return min(v.Width, v.Height) }

// Append appends the playlist's text to b.
func (m *Multivariant) Append(b []byte) []byte {
	b = append(b, "#EXTM3U\n#EXT-X-VERSION:7\n"...)
	if m.Independent {
		b = append(b, "#EXT-X-INDEPENDENT-SEGMENTS\n"...)
	}
	if m.ChaptersURI != "" {
		b = append(b, `#EXT-X-SESSION-DATA:DATA-ID="com.apple.hls.chapters",URI="`...)
		b = append(append(b, m.ChaptersURI...), "\"\n"...)
	}
	b = append(b, m.SessionKeys...)
	for i := range m.Renditions {
		b = m.Renditions[i].append(b)
	}
	for i := range m.Variants {
		b = m.Variants[i].append(b)
	}
	if m.Tiles != nil {
		b = m.Tiles.appendStream(b, m.TilesURI)
	}
	return b
}

func (r *Rendition) append(b []byte) []byte {
	b = append(b, "#EXT-X-MEDIA:TYPE="...)
	b = append(b, r.Type...)
	b = appendQuoted(b, "GROUP-ID", r.GroupID)
	b = appendQuoted(b, "NAME", r.Name)
	if r.Language != "" {
		b = appendQuoted(b, "LANGUAGE", r.Language)
	}
	b = appendYesNo(b, "DEFAULT", r.Default)
	b = appendYesNo(b, "AUTOSELECT", r.Autoselect || r.Default)
	if r.Type == "SUBTITLES" {
		b = appendYesNo(b, "FORCED", r.Forced)
	}
	if r.Characteristics != "" {
		b = appendQuoted(b, "CHARACTERISTICS", r.Characteristics)
	}
	if r.Channels > 0 {
		b = appendQuoted(b, "CHANNELS", strconv.Itoa(r.Channels))
	}
	b = appendQuoted(b, "URI", r.URI)
	return append(b, '\n')
}

func (v *Variant) append(b []byte) []byte {
	b = append(b, "#EXT-X-STREAM-INF:BANDWIDTH="...)
	b = strconv.AppendInt(b, max(v.Bandwidth, 1), 10)
	if v.AverageBandwidth > 0 {
		b = append(b, ",AVERAGE-BANDWIDTH="...)
		b = strconv.AppendInt(b, v.AverageBandwidth, 10)
	}
	if len(v.Codecs) > 0 {
		b = appendQuoted(b, "CODECS", strings.Join(v.Codecs, ","))
	}
	if v.Width > 0 && v.Height > 0 {
		b = append(b, ",RESOLUTION="...)
		b = strconv.AppendInt(b, int64(v.Width), 10)
		b = append(b, 'x')
		b = strconv.AppendInt(b, int64(v.Height), 10)
	}
	if v.FrameRate > 0 {
		b = append(b, ",FRAME-RATE="...)
		b = strconv.AppendFloat(b, v.FrameRate, 'f', 3, 64)
	}
	if v.Range != "" {
		b = append(append(b, ",VIDEO-RANGE="...), v.Range...)
	}
	if v.Audio != "" {
		b = appendQuoted(b, "AUDIO", v.Audio)
	}
	if v.Subtitles != "" {
		b = appendQuoted(b, "SUBTITLES", v.Subtitles)
	}
	if v.NoCaptions {
		b = append(b, ",CLOSED-CAPTIONS=NONE"...)
	}
	b = append(b, '\n')
	b = append(b, v.URI...)
	return append(b, '\n')
}

// appendQuoted writes a quoted-string attribute, section 4.2. It can hold no quote, and a playlist no control character
// and nothing that is not UTF-8, section 4.1: those are replaced.
func appendQuoted(b []byte, name, value string) []byte {
	b = append(b, ',')
	b = append(b, name...)
	b = append(b, '=', '"')
	for _, r := range value {
		switch {
		case r == '"':
			b = append(b, '\'')
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			b = append(b, ' ')
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

func appendYesNo(b []byte, name string, yes bool) []byte {
	b = append(b, ',')
	b = append(b, name...)
	if yes {
		return append(b, "=YES"...)
	}
	return append(b, "=NO"...)
}
