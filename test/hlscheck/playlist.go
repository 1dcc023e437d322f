package hlscheck

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// multivariant is what is read of a multivariant playlist.
type multivariant struct {
	version     int
	independent bool
	variants    []variant
	media       []mediaTag
	tiles       []tileStream
	session     []sessionData
}

type variant struct {
	uri, codecs, resolution string
	audio, subtitles        string // groups
	bandwidth, average      int    // -1: absent
	frameRate               float64
}

type mediaTag struct {
	kind, group, name, language, uri, channels string
	isDefault, autoselect                      bool
}

// media is what is read of a media playlist. Segments that a delta update skips are not in it, but count for the
// numbers.
type media struct {
	version         int
	independent     bool
	target          int // 0: absent
	partTarget      float64
	sequence        int
	discontinuities int // EXT-X-DISCONTINUITY-SEQUENCE
	hasSequence     bool
	hasDSN          bool
	kind            string // EXT-X-PLAYLIST-TYPE
	control         attributes
	hasControl      bool
	skipped         int
	ended           bool
	entries         []entry
	open            entry // what follows the last segment: parts of the one being made
	hints           []attributes
	reports         []attributes
	text            string
}

// entry is a segment.
type entry struct {
	msn           int
	uri           string
	byteRange     string
	duration      float64 // -1: none yet
	discontinuity bool
	gap           bool
	mapURI        string // of the EXT-X-MAP that applies
	mapRange      string
	pdt           time.Time
	parts         []partTag
	dsn           int // discontinuity sequence number
}

type partTag struct {
	uri         string
	byteRange   string
	duration    float64
	independent bool
	gap         bool
}

// next is the media sequence number after the last listed segment.
func (m *media) next() int { return m.open.msn }

// maxStand is by how many seconds a segment may be longer in the playlist than its samples, where a stretch of media
// ends: the renditions end together in the playlist, but their last samples do not. Where the service was killed they
// are up to a part apart.
const maxStand = 0.6

// stands reports whether a segment may last so many seconds longer than its samples: nothing of the same stretch
// follows, as far as is known.
func (m *media) stands(msn int, longer float64) bool {
	if longer < 0 || longer > maxStand {
		return false
	}
	if i := msn + 1 - m.sequence - m.skipped; i >= 0 && i < len(m.entries) {
		return m.entries[i].discontinuity || m.entries[i].gap
	}
	return msn+1 != m.open.msn || len(m.open.parts) == 0 || m.open.discontinuity
}

// ends is the date or time at which the listed media end, relative to the first listed segment, in seconds.
func (m *media) length() float64 {
	total := 0.0
	for _, e := range m.entries {
		total += e.duration
	}
	for _, p := range m.open.parts {
		total += p.duration
	}
	return total
}

// lastPart gives the newest part's place; part is -1 when the playlist has no parts at its end.
func (m *media) lastPart() (msn, part int) {
	if n := len(m.open.parts); n > 0 {
		return m.open.msn, n - 1
	}
	if n := len(m.entries); n > 0 {
		return m.entries[n-1].msn, len(m.entries[n-1].parts) - 1
	}
	return m.sequence - 1, -1
}

func (m *media) lowLatency() bool { return m.partTarget > 0 }

// lines checks the text as such and gives its lines without ends.
func lines(text string, say report) []string {
	say("utf8", utf8.ValidString(text) && !strings.HasPrefix(text, "\ufeff"), "not UTF-8, or with a byte order mark")
	list := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	say("extm3u", list[0] == "#EXTM3U", "the first line is %.40q", list[0])
	for _, l := range list {
		if i := strings.IndexFunc(l, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }); i >= 0 {
			say("utf8", false, "control character in %.80q", l)
		}
	}
	return list
}

// tagPlaces says where each tag belongs: b both playlists, m multivariant, p media playlist once, s media segment.
func tagPlaces() map[string]byte {
	return map[string]byte{
		"#EXTM3U": 'b', "#EXT-X-VERSION": 'b', "#EXT-X-INDEPENDENT-SEGMENTS": 'b', "#EXT-X-START": 'b',
		"#EXT-X-DEFINE": 'b',
		"#EXT-X-MEDIA":  'm', "#EXT-X-STREAM-INF": 'm', "#EXT-X-I-FRAME-STREAM-INF": 'm', "#EXT-X-SESSION-DATA": 'm',
		"#EXT-X-SESSION-KEY":      'm',
		"#EXT-X-CONTENT-STEERING": 'm', "#EXT-X-IMAGE-STREAM-INF": 'm', "#EXT-X-IMAGES-ONLY": 'p', "#EXT-X-TILES": 's',
		"#EXT-X-TARGETDURATION": 'p', "#EXT-X-MEDIA-SEQUENCE": 'p', "#EXT-X-DISCONTINUITY-SEQUENCE": 'p',
		"#EXT-X-ENDLIST": 'p', "#EXT-X-PLAYLIST-TYPE": 'p',
		"#EXT-X-I-FRAMES-ONLY": 'p', "#EXT-X-PART-INF": 'p', "#EXT-X-SERVER-CONTROL": 'p', "#EXT-X-SKIP": 'p',
		"#EXTINF": 's', "#EXT-X-BYTERANGE": 's', "#EXT-X-DISCONTINUITY": 's', "#EXT-X-KEY": 's', "#EXT-X-MAP": 's',
		"#EXT-X-PROGRAM-DATE-TIME": 's',
		"#EXT-X-GAP":               's', "#EXT-X-BITRATE": 's', "#EXT-X-PART": 's', "#EXT-X-DATERANGE": 's',
		"#EXT-X-PRELOAD-HINT": 's', "#EXT-X-RENDITION-REPORT": 's',
	}
}

// tags checks that each tag is known, in the right playlist, and not repeated.
func tags(list []string, multi bool, say report) {
	places := tagPlaces()
	count := map[string]int{}
	for _, l := range list {
		if !strings.HasPrefix(l, "#EXT") {
			continue
		}
		name, _, _ := strings.Cut(l, ":")
		place, known := places[name]
		say("tag-known", known, "%s", name)
		say("tag-place", !known || place == 'b' || (place == 'm') == multi, "%s", name)
		count[name]++
	}
	for name, n := range count {
		if place := places[name]; place == 'p' || place == 'b' && name != "#EXT-X-DEFINE" {
			say("tag-once", n == 1, "%s is there %d times", name, n)
		}
	}
	say("version", count["#EXT-X-VERSION"] == 1, "EXT-X-VERSION is there %d times", count["#EXT-X-VERSION"])
}

func parseMultivariant(text string, say report) *multivariant {
	m := &multivariant{}
	list := lines(text, say)
	tags(list, true, say)
	var pending *variant
	for _, l := range list {
		name, value, _ := strings.Cut(l, ":")
		switch {
		case name == "#EXT-X-VERSION":
			m.version, _ = strconv.Atoi(value)
		case name == "#EXT-X-INDEPENDENT-SEGMENTS":
			m.independent = true
		case name == "#EXT-X-STREAM-INF":
			a := parseAttributes("EXT-X-STREAM-INF", value, say)
			a.require(say, "EXT-X-STREAM-INF", "BANDWIDTH", "CODECS")
			pending = &variant{
				codecs: a.text("CODECS"), resolution: a.text("RESOLUTION"), audio: a.text("AUDIO"),
				subtitles: a.text("SUBTITLES"),
				bandwidth: a.integer("BANDWIDTH"), average: a.integer("AVERAGE-BANDWIDTH"),
				frameRate: a.number("FRAME-RATE"),
			}
		case name == "#EXT-X-MEDIA":
			a := parseAttributes("EXT-X-MEDIA", value, say)
			a.require(say, "EXT-X-MEDIA", "TYPE", "GROUP-ID", "NAME")
			m.media = append(m.media, mediaTag{
				kind: a.text("TYPE"), group: a.text("GROUP-ID"), name: a.text("NAME"), language: a.text("LANGUAGE"),
				uri:      a.text("URI"),
				channels: a.text("CHANNELS"), isDefault: a.yes("DEFAULT"), autoselect: a.yes("AUTOSELECT"),
			})
		case name == "#EXT-X-IMAGE-STREAM-INF":
			a := parseAttributes("EXT-X-IMAGE-STREAM-INF", value, say)
			a.require(say, "EXT-X-IMAGE-STREAM-INF", "BANDWIDTH", "RESOLUTION", "CODECS", "URI")
			m.tiles = append(m.tiles, tileStream{
				uri: a.text("URI"), resolution: a.text("RESOLUTION"), bandwidth: a.integer("BANDWIDTH"),
			})
		case name == "#EXT-X-SESSION-DATA":
			a := parseAttributes("EXT-X-SESSION-DATA", value, say)
			a.require(say, "EXT-X-SESSION-DATA", "DATA-ID")
			m.session = append(m.session, sessionData{
				id: a.text("DATA-ID"), value: a.text("VALUE"), uri: a.text("URI"), format: a.text("FORMAT"),
			})
		case l != "" && !strings.HasPrefix(l, "#"):
			say("attributes", pending != nil, "URI %.80s follows no EXT-X-STREAM-INF", l)
			if pending != nil {
				pending.uri = l
				m.variants = append(m.variants, *pending)
				pending = nil
			}
		}
	}
	say("attributes", pending == nil, "the last EXT-X-STREAM-INF has no URI")
	return m
}

// mediaReader holds what carries over from line to line.
type mediaReader struct {
	m         *media
	say       report
	cur       entry
	mapURI    string
	mapRange  string
	began     bool // a segment, part or discontinuity has been seen
	needs     int  // the version that the features so far need
	needsWhat string
}

func parseMedia(text string, say report) *media {
	list := lines(text, say)
	tags(list, false, say)
	r := &mediaReader{m: &media{text: text}, say: say, cur: entry{duration: -1}, needs: 1}
	for _, l := range list {
		if l == "" || strings.HasPrefix(l, "#") && !strings.HasPrefix(l, "#EXT") {
			continue
		}
		if !strings.HasPrefix(l, "#") {
			r.segment(l)
			continue
		}
		name, value, _ := strings.Cut(l, ":")
		if !r.header(name, value) {
			r.item(name, value)
		}
	}
	m := r.m
	m.open = r.cur
	m.open.msn = r.msn()
	m.open.mapURI, m.open.mapRange = r.mapURI, r.mapRange
	r.number()
	say("target-duration-tag", m.target > 0, "EXT-X-TARGETDURATION is missing or no positive integer")
	say("version", m.version >= r.needs, "EXT-X-VERSION is %d, but %s needs %d", m.version, r.needsWhat, r.needs)
	say("playlist-type", m.kind == "" || m.kind == "EVENT" || m.kind == "VOD", "EXT-X-PLAYLIST-TYPE is %q", m.kind)
	say("playlist-type", m.kind != "VOD" || m.ended, "VOD without EXT-X-ENDLIST")
	words := r.mapURI == "" && !strings.Contains(text, "#EXT-X-DISCONTINUITY\n") // of text, which has no EXT-X-MAP
	say("discontinuity-sequence-tag", m.hasDSN || m.kind != "" || m.ended || words,
		"a live playlist without EXT-X-DISCONTINUITY-SEQUENCE")
	return m
}

func (mr *mediaReader) msn() int { return mr.m.sequence + mr.m.skipped + len(mr.m.entries) }

// number gives each segment its discontinuity sequence number: the tag's plus the breaks up to and with it.
func (mr *mediaReader) number() {
	dsn := mr.m.discontinuities
	for i := range mr.m.entries {
		if mr.m.entries[i].discontinuity {
			dsn++
		}
		mr.m.entries[i].dsn = dsn
	}
	if mr.m.open.discontinuity {
		dsn++
	}
	mr.m.open.dsn = dsn
}

func (mr *mediaReader) need(version int, what string) {
	if version > mr.needs {
		mr.needs, mr.needsWhat = version, what
	}
}

// header reads tags of the whole playlist.
func (mr *mediaReader) header(name, value string) bool {
	m := mr.m
	switch name {
	case "#EXTM3U":
	case "#EXT-X-VERSION":
		m.version, _ = strconv.Atoi(value)
	case "#EXT-X-INDEPENDENT-SEGMENTS":
		m.independent = true
	case "#EXT-X-TARGETDURATION":
		m.target, _ = strconv.Atoi(value)
	case "#EXT-X-MEDIA-SEQUENCE":
		n, err := strconv.Atoi(value)
		mr.say("media-sequence-tag", err == nil && n >= 0 && !mr.began,
			"EXT-X-MEDIA-SEQUENCE:%s is malformed or after the first segment", value)
		m.sequence, m.hasSequence = n, true
	case "#EXT-X-DISCONTINUITY-SEQUENCE":
		n, err := strconv.Atoi(value)
		mr.say("discontinuity-sequence-tag", err == nil && n >= 0 && !mr.began,
			"EXT-X-DISCONTINUITY-SEQUENCE:%s is malformed or too late", value)
		m.discontinuities, m.hasDSN = n, true
	case "#EXT-X-PLAYLIST-TYPE":
		m.kind = value
	case "#EXT-X-ENDLIST":
		m.ended = true
	case "#EXT-X-PART-INF":
		a := parseAttributes("EXT-X-PART-INF", value, mr.say)
		a.require(mr.say, "EXT-X-PART-INF", "PART-TARGET")
		m.partTarget = a.number("PART-TARGET")
	case "#EXT-X-SERVER-CONTROL":
		m.control, m.hasControl = parseAttributes("EXT-X-SERVER-CONTROL", value, mr.say), true
	case "#EXT-X-SKIP":
		a := parseAttributes("EXT-X-SKIP", value, mr.say)
		a.require(mr.say, "EXT-X-SKIP", "SKIPPED-SEGMENTS")
		m.skipped = max(0, a.integer("SKIPPED-SEGMENTS"))
		mr.need(9, "EXT-X-SKIP")
	default:
		return false
	}
	return true
}

// item reads tags of segments.
func (mr *mediaReader) item(name, value string) {
	m := mr.m
	switch name {
	case "#EXTINF":
		number, _, _ := strings.Cut(value, ",")
		d, err := strconv.ParseFloat(number, 64)
		mr.say("attributes", err == nil && d >= 0 && strings.Contains(value, ","), "EXTINF:%s is malformed", value)
		if strings.Contains(number, ".") {
			mr.need(3, "EXTINF with decimals")
		}
		mr.cur.duration = d
	case "#EXT-X-BYTERANGE":
		mr.cur.byteRange = value
		mr.need(4, "EXT-X-BYTERANGE")
	case "#EXT-X-DISCONTINUITY":
		mr.cur.discontinuity, mr.began = true, true
	case "#EXT-X-GAP":
		mr.cur.gap = true
	case "#EXT-X-MAP":
		a := parseAttributes("EXT-X-MAP", value, mr.say)
		a.require(mr.say, "EXT-X-MAP", "URI")
		mr.mapURI, mr.mapRange = a.text("URI"), a.text("BYTERANGE")
		mr.need(6, "EXT-X-MAP")
	case "#EXT-X-PROGRAM-DATE-TIME":
		at, err := time.Parse(time.RFC3339Nano, value)
		mr.say("pdt", err == nil, "EXT-X-PROGRAM-DATE-TIME:%s is malformed", value)
		mr.cur.pdt = at
	case "#EXT-X-PART":
		a := parseAttributes("EXT-X-PART", value, mr.say)
		a.require(mr.say, "EXT-X-PART", "URI", "DURATION")
		mr.began = true
		mr.cur.parts = append(mr.cur.parts, partTag{
			uri: a.text("URI"), byteRange: a.text("BYTERANGE"), duration: a.number("DURATION"),
			independent: a.yes("INDEPENDENT"), gap: a.yes("GAP"),
		})
	case "#EXT-X-PRELOAD-HINT":
		a := parseAttributes("EXT-X-PRELOAD-HINT", value, mr.say)
		a.require(mr.say, "EXT-X-PRELOAD-HINT", "TYPE", "URI")
		m.hints = append(m.hints, a)
	case "#EXT-X-RENDITION-REPORT":
		a := parseAttributes("EXT-X-RENDITION-REPORT", value, mr.say)
		a.require(mr.say, "EXT-X-RENDITION-REPORT", "URI", "LAST-MSN")
		m.reports = append(m.reports, a)
	}
}

func (mr *mediaReader) segment(uri string) {
	mr.say("attributes", mr.cur.duration >= 0, "segment %.80s has no EXTINF", uri)
	mr.began = true
	e := mr.cur
	e.uri, e.msn, e.mapURI, e.mapRange = uri, mr.msn(), mr.mapURI, mr.mapRange
	mr.m.entries = append(mr.m.entries, e)
	mr.cur = entry{duration: -1}
}
