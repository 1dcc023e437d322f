package encode

import (
	"bytes"
	"encoding/binary"
)

// SniffSize is how many bytes of a file's beginning Sniff wants to see, if there are that many.
const SniffSize = 64 << 10

// Sniff tells the format of a file from its first bytes, never from its name or what a server said it was.
func Sniff(head []byte) (Format, bool) {
	if isMPEGTS(head) {
		return MPEGTS, true
	}
	if len(head) < 12 {
		return "", false
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1A, 0x45, 0xDF, 0xA3}):
		return Matroska, true
	case isMOV(head):
		return MOV, true
	case (string(head[:4]) == "RIFF" || string(head[:4]) == "RF64") && string(head[8:12]) == "WAVE":
		return WAV, true
	case string(head[:4]) == "OggS":
		return Ogg, true
	}
	tagged := false
	for bytes.HasPrefix(head, []byte("ID3")) && len(head) >= 10 {
		tagged = true
		size := 10 + int(head[6]&0x7F)<<21 + int(head[7]&0x7F)<<14 + int(head[8]&0x7F)<<7 + int(head[9]&0x7F)
		if head[5]&0x10 != 0 {
			size += 10 // footer
		}
		if size >= len(head) {
			return MP3, true // a large cover picture; nearly always MP3, and the demuxer decides
		}
		head = head[size:]
	}
	head = bytes.TrimLeft(head, "\x00") // padding after the tag
	switch {
	case bytes.HasPrefix(head, []byte("fLaC")):
		return FLAC, true
	case isADTS(head):
		return ADTS, true
	case isMP3(head) || tagged && len(head) < 4:
		return MP3, true
	}
	return "", false
}

// isMOV looks for a first box that files of the family begin with.
func isMOV(head []byte) bool {
	switch string(head[4:8]) {
	case "ftyp", "styp", "moov", "moof", "mdat", "free", "skip", "wide", "pnot":
		size := binary.BigEndian.Uint32(head)
		return size >= 8 || size <= 1
	}
	return false
}

// isMPEGTS wants the sync byte at three places, as packets of 188 bytes or, with a time in front, of 192.
func isMPEGTS(head []byte) bool {
	for _, shape := range [...]struct{ offset, size int }{{0, 188}, {4, 192}} {
		n := 0
		for at := shape.offset; at < len(head) && n < 3 && head[at] == 0x47; at += shape.size {
			n++
		}
		if n == 3 {
			return true
		}
	}
	return false
}

// isADTS wants two frame headers in a row (ISO 13818-7 6.2).
func isADTS(head []byte) bool {
	for n := 0; ; n++ {
		if len(head) < 7 || head[0] != 0xFF || head[1]&0xF6 != 0xF0 {
			return false
		}
		size := int(head[3]&3)<<11 | int(head[4])<<3 | int(head[5])>>5
		if size < 7 {
			return false
		}
		if n == 0 && size >= len(head) {
			return size == len(head) // a file of one frame
		}
		if n == 1 {
			return true
		}
		head = head[size:]
	}
}

// isMP3 wants one valid header of MPEG audio layer III (or II).
func isMP3(head []byte) bool {
	if len(head) < 4 || head[0] != 0xFF || head[1]&0xE0 != 0xE0 {
		return false
	}
	version, layer := head[1]>>3&3, head[1]>>1&3
	bitrate, rate := head[2]>>4, head[2]>>2&3
	return version != 1 && (layer == 1 || layer == 2) && bitrate != 15 && bitrate != 0 && rate != 3
}
