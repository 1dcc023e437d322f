// Package sniff detects a file's format from its first bytes, before any other program sees the file. Formats that are
// not on its list are refused, above all playlists, which would make ffmpeg open the files that they name. Bytes in, a
// value out: it must never know files, sockets, time of day or a logger, and it starts no goroutines.
package sniff

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// Format is a file's format.
type Format string

// The formats.
const (
	Unknown  Format = "unknown"
	MP4      Format = "mp4"      // and MOV, M4A, fragmented
	Matroska Format = "matroska" // and WebM
	MPEGTS   Format = "mpegts"   // packets of 188, 192 or 204 bytes
	FLV      Format = "flv"
	AVI      Format = "avi"
	WAV      Format = "wav"
	MP3      Format = "mp3"
	ADTS     Format = "adts"
	Ogg      Format = "ogg" // Opus, Vorbis, FLAC
	FLAC     Format = "flac"
	MPEGPS   Format = "mpeg" // program streams: VOB, MPG
	ASF      Format = "asf"  // WMV, WMA
	MXF      Format = "mxf"
	AIFF     Format = "aiff" // and AIFF-C
	CAF      Format = "caf"
	W64      Format = "w64"
	AC3      Format = "ac3"
	EAC3     Format = "eac3"
	GIF      Format = "gif"
	NUT      Format = "nut"
	H264     Format = "h264"     // a byte stream without a container, ITU-T H.264 Annex B
	HEVC     Format = "hevc"     // likewise, ITU-T H.265 Annex B
	Playlist Format = "playlist" // M3U8, DASH, ffconcat, SDP, …: names other files and must be refused
	HTML     Format = "html"     // or other markup: mostly an error page in place of the file
	Text     Format = "text"     // other text, as subtitles
)

// HeadSize is how many bytes, from a file's start, Kind is best given.
const HeadSize = 8192

// Demuxer is the name to give to ffmpeg's -f, so that it does not guess by itself; "" for what ffmpeg must not read.
func (f Format) Demuxer() string {
	switch f {
	case MP4:
		return "mov"
	case Matroska, MPEGTS, FLV, AVI, WAV, MP3, Ogg, FLAC, MPEGPS, ASF, MXF, AIFF, CAF, W64, AC3, EAC3, GIF, NUT, H264,
		HEVC:
		return string(f)
	case ADTS:
		return "aac"
	case Unknown, Playlist, HTML, Text:
	}
	return ""
}

// Kind tells the format of a file that begins with head. What could be two formats is the one that is more dangerous.
func Kind(head []byte) Format {
	if f := text(head); f != Unknown {
		return f
	}
	if f := magic(head); f != Unknown {
		return f
	}
	if bytes.HasPrefix(head, []byte("ID3")) {
		return tagged(head)
	}
	if transport(head) {
		return MPEGTS
	}
	if f := byteStream(head); f != Unknown {
		return f
	}
	return audio(head)
}

// chunked are the four letters that files of chunks begin with.
var chunked = map[Format][]string{WAV: {"RIFF", "RF64"}, AVI: {"RIFF", "RF64"}, AIFF: {"FORM"}} //nolint:gochecknoglobals // a table

func magic(head []byte) Format {
	for _, m := range [...]struct {
		at   int
		text string
		f    Format
	}{
		{0, "\x1a\x45\xdf\xa3", Matroska},
		{0, "OggS", Ogg},
		{0, "fLaC", FLAC},
		{0, "FLV\x01", FLV},
		{8, "WAVE", WAV},
		{8, "AVI ", AVI},
		{8, "AIFF", AIFF},
		{8, "AIFC", AIFF},
		{0, "caff\x00\x01", CAF},
		{0, "riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00", W64},
		{0, "\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c", ASF},
		{0, "\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02\x01\x01\x02", MXF}, // a header partition pack, SMPTE ST 377-1
		{0, "\x00\x00\x01\xba", MPEGPS},                                      // a pack header
		{0, "GIF87a", GIF},
		{0, "GIF89a", GIF},
		{0, "nut/multimedia container\x00", NUT},
	} {
		if len(head) < m.at+len(m.text) || string(head[m.at:m.at+len(m.text)]) != m.text {
			continue
		}
		if m.at == 0 || slices.Contains(chunked[m.f], string(head[:4])) {
			return m.f
		}
	}
	if len(head) >= 8 {
		size := binary.BigEndian.Uint32(head)
		switch string(head[4:8]) {
		case "ftyp", "moov", "mdat", "free", "skip", "wide", "pnot", "styp", "sidx", "moof":
			if size <= 1 || size >= 8 {
				return MP4
			}
		}
	}
	return Unknown
}

// tagged skips an ID3v2 tag; behind it may be MP3, ADTS or FLAC. When the tag is longer than head MP3 is the best
// guess.
func tagged(head []byte) Format {
	if len(head) < 10 {
		return Unknown
	}
	size := 0
	for _, c := range head[6:10] {
		if c >= 0x80 {
			return Unknown
		}
		size = size<<7 | int(c)
	}
	if size+10+4 > len(head) {
		return MP3
	}
	rest := head[10+size:]
	if bytes.HasPrefix(rest, []byte("fLaC")) {
		return FLAC
	}
	rest = bytes.TrimLeft(rest, "\x00") // padding
	if bytes.HasPrefix(rest, []byte("ID3")) {
		return tagged(rest)
	}
	if f := audio(rest); f != Unknown || len(rest) > 0 {
		return f
	}
	return MP3
}

// transport reports whether there are sync bytes a packet apart, wherever the first packet begins.
func transport(head []byte) bool {
	const wanted = 4
	for _, size := range [...]int{188, 192, 204} {
		for at := 0; at < size && at+size < len(head); at++ {
			n := 0
			for p := at; p < len(head) && head[p] == 0x47; p += size {
				n++
			}
			if n >= wanted || n >= 2 && at == 0 && at+n*size >= len(head) {
				return true
			}
		}
	}
	return false
}

// audio tells MP3, ADTS and AC-3 by the frame header, and wants a second frame where head reaches it.
func audio(head []byte) Format {
	for _, try := range [...]struct {
		f      Format
		length func([]byte) int
	}{{ADTS, adtsLength}, {MP3, mp3Length}, {AC3, ac3Length}, {EAC3, eac3Length}} {
		n := try.length(head)
		if n > 0 && (n+7 > len(head) || try.length(head[n:]) > 0) {
			return try.f
		}
	}
	return Unknown
}

// adtsLength is the length of the ADTS frame that b begins with, ISO 14496-3 section 1.A.2.2; 0 when it is none.
func adtsLength(b []byte) int {
	if len(b) < 7 || b[0] != 0xff || b[1]&0xf6 != 0xf0 || b[2]>>2&15 > 12 {
		return 0
	}
	n := int(b[3]&3)<<11 | int(b[4])<<3 | int(b[5]>>5)
	if n < 7 {
		return 0
	}
	return n
}

// Bit rates in kbit/s of layers I, II, III of MPEG-1 and I, II and III of MPEG-2, ISO 11172-3 section 2.4.2.3.
var bitRates = [5][15]int{ //nolint:gochecknoglobals // a table
	{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
	{0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
	{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
	{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
	{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
}

// mp3Length is the length of the MPEG audio frame that b begins with; 0 when it is none or has a free bit rate.
func mp3Length(b []byte) int {
	if len(b) < 4 || b[0] != 0xff || b[1]&0xe0 != 0xe0 {
		return 0
	}
	version, layer, rate, freq := b[1]>>3&3, 4-int(b[1]>>1&3), int(b[2]>>4), int(b[2]>>2&3)
	if version == 1 || layer == 4 || rate == 0 || rate == 15 || freq == 3 {
		return 0
	}
	hz := [...]int{44100, 48000, 32000}[freq]
	table := layer - 1
	if version != 3 {
		table = 3 + min(table, 1)
		hz /= 2
		if version == 0 {
			hz /= 2
		}
	}
	pad := int(b[2] >> 1 & 1)
	bits := bitRates[table][rate] * 1000
	switch {
	case layer == 1:
		return (12*bits/hz + pad) * 4
	case layer == 3 && version != 3:
		return 72*bits/hz + pad
	}
	return 144*bits/hz + pad
}

// text tells markup, playlists and other text. Bytes that no text has make it Unknown, unless a playlist stands in
// front of them.
func text(head []byte) Format {
	b := bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	b = bytes.TrimLeft(b, " \t\r\n\v\f\x00")
	lower := bytes.ToLower(b[:min(len(b), 4096)])
	for _, p := range [...]string{
		"#extm3u", "#ext-x-", "ffconcat version", "[playlist]", "[reference]", "v=0\r\n", "v=0\n", "m=", "rtsptext",
		"smjpeg",
	} {
		if bytes.HasPrefix(lower, []byte(p)) {
			return Playlist
		}
	}
	plain := isText(b)
	if plain &&
		(bytes.Contains(lower, []byte("\n#extm3u")) || bytes.Contains(lower, []byte("<mpd")) ||
			bytes.Contains(lower, []byte("<smoothstreamingmedia"))) {
		return Playlist
	}
	for _, p := range [...]string{"<!doctype", "<html", "<head", "<body", "<script", "<?xml", "<!--", "<svg", "<asx"} {
		if bytes.HasPrefix(lower, []byte(p)) {
			return HTML
		}
	}
	if plain || bytes.HasPrefix(head, []byte("\xff\xfe")) && len(head) > 3 && head[3] == 0 ||
		bytes.HasPrefix(head, []byte("\xfe\xff\x00")) {
		return Text
	}
	return Unknown
}

// isText reports whether data is some UTF-8 or Latin-1 without control characters.
func isText(b []byte) bool {
	if len(b) < 8 {
		return false
	}
	high := 0
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != 0x1b || c == 0x7f {
			return false
		}
		if c >= 0x80 {
			high++
		}
	}
	cut := b[:max(len(b)-utf8.UTFMax, 0)] // its last character may be cut off
	return high == 0 || utf8.Valid(b) || high < len(b)/4 || utf8.Valid(cut)
}
