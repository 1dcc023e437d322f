package viewer

import (
	"strconv"
	"strings"
)

// Part is a partial segment of a playlist.
type Part struct {
	MSN      int64
	Index    int
	URI      string
	Duration float64 // seconds
}

// Playlist is what a viewer needs of a media playlist, RFC 8216bis section 4.4.
type Playlist struct {
	Parts      []Part
	Segments   []Part // without those that are gaps
	PartTarget float64
	Hint       string
	NextMSN    int64 // what a blocking reload asks for
	NextPart   int
	Ended      bool
}

// ParseMedia reads a media playlist.
func ParseMedia(text []byte) *Playlist {
	p := &Playlist{}
	var msn int64
	part, gap := 0, false
	duration := 0.0
	for line := range strings.SplitSeq(string(text), "\n") {
		line = strings.TrimRight(line, "\r")
		tag, value, _ := strings.Cut(line, ":")
		switch {
		case line == "":
		case tag == "#EXT-X-MEDIA-SEQUENCE":
			msn, _ = strconv.ParseInt(value, 10, 64)
		case tag == "#EXT-X-SKIP":
			n, _ := strconv.ParseInt(Attribute(value, "SKIPPED-SEGMENTS"), 10, 64)
			msn += n
		case tag == "#EXT-X-PART-INF":
			p.PartTarget, _ = strconv.ParseFloat(Attribute(value, "PART-TARGET"), 64)
		case tag == "#EXT-X-PART":
			d, _ := strconv.ParseFloat(Attribute(value, "DURATION"), 64)
			if Attribute(value, "GAP") != "YES" {
				p.Parts = append(p.Parts, Part{MSN: msn, Index: part, URI: Attribute(value, "URI"), Duration: d})
			}
			part++
		case tag == "#EXT-X-PRELOAD-HINT":
			p.Hint = Attribute(value, "URI")
		case tag == "#EXT-X-GAP":
			gap = true
		case tag == "#EXTINF":
			d, _, _ := strings.Cut(value, ",")
			duration, _ = strconv.ParseFloat(d, 64)
		case tag == "#EXT-X-ENDLIST":
			p.Ended = true
		case line[0] != '#':
			if !gap {
				p.Segments = append(p.Segments, Part{MSN: msn, Index: -1, URI: line, Duration: duration})
			}
			msn++
			part, gap = 0, false
		}
	}
	p.NextMSN, p.NextPart = msn, part
	return p
}

// ParseMultivariant gives the URIs of the first variant and of the renditions beside it.
func ParseMultivariant(text []byte) []string {
	var uris []string
	next := false
	for line := range strings.SplitSeq(string(text), "\n") {
		line = strings.TrimRight(line, "\r")
		tag, value, _ := strings.Cut(line, ":")
		switch {
		case tag == "#EXT-X-MEDIA":
			if uri := Attribute(value, "URI"); uri != "" && Attribute(value, "TYPE") == "AUDIO" {
				uris = append(uris, uri)
			}
		case tag == "#EXT-X-STREAM-INF":
			next = true
		case next && line != "" && line[0] != '#':
			return append([]string{line}, uris...)
		}
	}
	return nil
}

// Attribute finds one attribute in a tag's list.
func Attribute(list, name string) string {
	for list != "" {
		key, rest, ok := strings.Cut(list, "=")
		if !ok {
			return ""
		}
		var value string
		if quoted, isQuoted := strings.CutPrefix(rest, `"`); isQuoted {
			value, rest, _ = strings.Cut(quoted, `"`)
			rest = strings.TrimPrefix(rest, ",")
		} else {
			value, rest, _ = strings.Cut(rest, ",")
		}
		if strings.TrimSpace(key) == name {
			return value
		}
		list = rest
	}
	return ""
}
