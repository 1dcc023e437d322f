package hls

import (
	"strconv"
	"strings"
)

// The names of a rendition's resources, relative to its media playlist {rendition}.m3u8. Segments and parts are told
// apart by the second number, so that each can be cached for ever.

// PlaylistURI names a rendition's media playlist.
func PlaylistURI(rendition string) string { return rendition + ".m3u8" }

// RenditionOf is the rendition that a media playlist's URI names.
func RenditionOf(uri string) string { return strings.TrimSuffix(uri, ".m3u8") }

// InitURI names an initialization segment.
func InitURI(rendition string, n int) string {
	return rendition + "/init-" + strconv.Itoa(n) + ".mp4"
}

// SegmentURI names a media segment; ext is "m4s" or "vtt".
func SegmentURI(rendition string, msn int64, ext string) string {
	return rendition + "/" + strconv.FormatInt(msn, 10) + "." + ext
}

// PartURI names a partial segment.
func PartURI(rendition string, msn int64, part int) string {
	return rendition + "/" + strconv.FormatInt(msn, 10) + "." + strconv.Itoa(part) + ".m4s"
}

// InGeneration is the URI of a segment, part or initialization segment that was published in a later generation of its
// broadcast than the first, 0: "v/7.m4s" becomes "v/2-7.m4s". A process that goes on behind what another one may have
// published never gives a URL other bytes.
func InGeneration(generation int64, uri string) string {
	if generation == 0 {
		return uri
	}
	rendition, name, _ := strings.Cut(uri, "/")
	return rendition + "/" + strconv.FormatInt(generation, 10) + "-" + name
}

// Resource is what a name below a rendition stands for.
type Resource struct {
	Generation int64 // 0: the first
	Init       int   // number of an initialization segment; -1: it is media
	MSN        int64 // media sequence number
	Part       int   // -1: the whole segment
	Ext        string
}

// Fits reports whether a rendition has resources of such names: text has whole segments of WebVTT alone, and any other
// none of these.
func (r Resource) Fits(text bool) bool {
	switch {
	case text:
		return r.Ext == "vtt" && r.Init < 0 && r.Part < 0
	case r.Init >= 0:
		return r.Ext == "mp4"
	}
	return r.Ext == "m4s"
}

// ParseResource reads the last element of a name made above, with its generation if it has one; ok is false for
// anything else.
func ParseResource(name string) (r Resource, ok bool) {
	r = Resource{Init: -1, Part: -1}
	if before, after, found := strings.Cut(name, "-"); found && before != "init" {
		n, valid := number(before)
		if !valid || n == 0 {
			return r, false
		}
		r.Generation, name = int64(n), after
	}
	stem, ext, found := cutLast(name, '.')
	if !found {
		return r, false
	}
	r.Ext = ext
	if n, isInit := strings.CutPrefix(stem, "init-"); isInit {
		r.Init, ok = number(n)
		return r, ok && ext == "mp4"
	}
	seq, part, parted := strings.Cut(stem, ".")
	msn, ok := number(seq)
	if !ok || (ext != "m4s" && ext != "vtt") {
		return r, false
	}
	r.MSN = int64(msn)
	if parted {
		r.Part, ok = number(part)
		return r, ok && ext == "m4s"
	}
	return r, true
}

func cutLast(s string, sep byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// number reads a plain decimal without sign or leading zeros, so that each resource has one name only.
func number(s string) (int, bool) {
	if s == "" || len(s) > 15 || (s[0] == '0' && len(s) > 1) {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}
