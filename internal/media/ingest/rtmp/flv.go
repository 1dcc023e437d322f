package rtmp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"millrace/internal/media/rtmpwire"
)

// content is what a tag body carries.
type content uint8

const (
	nothing content = iota // metadata, ends of sequence, other tracks
	configuration
	mediaFrame
)

// tag is the body of an audio or video message without its header. data shares the message's memory.
type tag struct {
	content content
	offset  time.Duration // composition time: PTS - DTS, may be negative
	data    []byte
}

// errTag is a single body that can not be read: it is passed over and counted.
var errTag = errors.New("malformed media message")

// unsupportedError ends a publication: what it sends can not be packaged. Its text is shown to the encoder.
type unsupportedError string

func (e unsupportedError) Error() string { return string(e) }

// Codecs of the FLV specification, annex E.4.2.1 and E.4.3.1, as people know them; 12 is the unofficial HEVC.
var (
	videoCodecs = map[byte]string{2: "Sorenson H.263", 3: "Screen Video", 4: "VP6", 5: "VP6 with alpha", 6: "Screen Video 2", 12: "HEVC", 13: "AV1"}                                                                  //nolint:gochecknoglobals // a table
	audioCodecs = map[byte]string{0: "linear PCM", 1: "ADPCM", 2: "MP3", 3: "linear PCM", 4: "Nellymoser", 5: "Nellymoser", 6: "Nellymoser", 7: "G.711 A-law", 8: "G.711 mu-law", 11: "Speex", 13: "Opus", 14: "MP3"} //nolint:gochecknoglobals // a table
)

const (
	flvAVC          = 7
	flvAAC          = 10
	flvExtendedBit  = 0x80
	flvExtendedFlag = 9 // audio: the codec id that means an extended header
	flvCommandFrame = 5
)

func unsupported(kind, name string, id byte, want string) error {
	if name == "" {
		name = fmt.Sprintf("codec %d", id)
	}
	return unsupportedError(fmt.Sprintf("%s codec %s is not supported, send %s", kind, name, want))
}

// parseVideo reads a video message: FLV annex E.4.3, and Enhanced RTMP for H.264 under its own name.
func parseVideo(b []byte) (tag, error) {
	if len(b) == 0 {
		return tag{}, nil // an empty message is a keep-alive of some encoders
	}
	if b[0]&flvExtendedBit != 0 {
		return parseExtended(b, "avc1", "video", "H.264")
	}
	if b[0]>>4 == flvCommandFrame {
		return tag{}, nil
	}
	if id := b[0] & 15; id != flvAVC {
		return tag{}, unsupported("video", videoCodecs[id], id, "H.264")
	}
	if len(b) < 5 {
		return tag{}, fmt.Errorf("%w: video of %d bytes", errTag, len(b))
	}
	switch b[1] {
	case 0:
		return tag{content: configuration, data: b[5:]}, nil
	case 1:
		return tag{content: mediaFrame, offset: signed24(b[2:]), data: b[5:]}, nil
	}
	return tag{}, nil
}

// parseAudio reads an audio message: FLV annex E.4.2, and Enhanced RTMP for AAC under its own name.
func parseAudio(b []byte) (tag, error) {
	if len(b) == 0 {
		return tag{}, nil
	}
	switch id := b[0] >> 4; id {
	case flvAAC:
	case flvExtendedFlag:
		return parseExtended(b, "mp4a", "audio", "AAC")
	default:
		return tag{}, unsupported("audio", audioCodecs[id], id, "AAC")
	}
	if len(b) < 2 {
		return tag{}, fmt.Errorf("%w: audio of %d bytes", errTag, len(b))
	}
	switch b[1] {
	case 0:
		return tag{content: configuration, data: b[2:]}, nil
	case 1:
		return tag{content: mediaFrame, data: b[2:]}, nil
	}
	return tag{}, nil
}

func signed24(b []byte) time.Duration {
	v := int32(uint32(b[0])<<24|uint32(b[1])<<16|uint32(b[2])<<8) >> 8
	return time.Duration(v) * time.Millisecond
}

// Packet types of Enhanced RTMP version 2; audio and video share the first three numbers and multitrack is one apart.
const (
	exSequenceStart = 0
	exCodedFrames   = 1
	exFramesX       = 3 // video: coded frames whose composition time is 0
	exMultitrack    = 6 // video; audio has 5
	exModEx         = 7
)

// parseExtended reads an Enhanced RTMP header, "ExVideoTagHeader" and "ExAudioTagHeader" of its version 2.
func parseExtended(b []byte, fourCC, kind, want string) (tag, error) {
	video := kind == "video"
	packetType := b[0] & 15
	b = b[1:]
	for packetType == exModEx { // modifiers such as nanosecond offsets are read past
		var ok bool
		if packetType, b, ok = skipModifier(b); !ok {
			return tag{}, fmt.Errorf("%w: %s modifier", errTag, kind)
		}
	}
	if (video && packetType == exMultitrack) || (!video && packetType == exMultitrack-1) {
		var ok bool
		if packetType, b, ok = firstTrack(b); !ok {
			return tag{}, nil
		}
	}
	if len(b) < 4 {
		return tag{}, fmt.Errorf("%w: extended %s of %d bytes", errTag, kind, len(b)+1)
	}
	name, b := string(b[:4]), b[4:]
	if name != fourCC {
		return tag{}, unsupported(kind, encoderName(strings.TrimSpace(name)), 0, want)
	}
	switch {
	case packetType == exSequenceStart:
		return tag{content: configuration, data: b}, nil
	case packetType == exCodedFrames && video:
		if len(b) < 3 {
			return tag{}, fmt.Errorf("%w: extended video without composition time", errTag)
		}
		return tag{content: mediaFrame, offset: signed24(b), data: b[3:]}, nil
	case packetType == exCodedFrames, packetType == exFramesX && video:
		return tag{content: mediaFrame, data: b}, nil
	}
	return tag{}, nil
}

// skipModifier reads past one ModEx block: size, data, and the packet type that follows it.
func skipModifier(b []byte) (packetType byte, rest []byte, ok bool) {
	if len(b) < 1 {
		return 0, nil, false
	}
	n := int(b[0]) + 1
	b = b[1:]
	if n == 256 {
		if len(b) < 2 {
			return 0, nil, false
		}
		n = int(binary.BigEndian.Uint16(b)) + 1
		b = b[2:]
	}
	if len(b) < n+1 {
		return 0, nil, false
	}
	return b[n] & 15, b[n+1:], true
}

// firstTrack takes track 0 out of a multitrack message and gives it back as a message of one track: four-character code, then
// its body. Other tracks are not taken in this version.
func firstTrack(b []byte) (packetType byte, body []byte, ok bool) {
	const oneTrack, manyCodecs = 0, 2
	if len(b) < 1 {
		return 0, nil, false
	}
	layout, packetType := b[0]>>4, b[0]&15
	b = b[1:]
	shared := []byte(nil)
	if layout != manyCodecs {
		if len(b) < 4 {
			return 0, nil, false
		}
		shared, b = b[:4], b[4:]
	}
	for len(b) > 0 {
		fourCC := shared
		if fourCC == nil {
			if len(b) < 4 {
				return 0, nil, false
			}
			fourCC, b = b[:4], b[4:]
		}
		if len(b) < 1 {
			return 0, nil, false
		}
		id, n := b[0], len(b)-1
		b = b[1:]
		if layout != oneTrack {
			if len(b) < 3 {
				return 0, nil, false
			}
			n = int(b[0])<<16 | int(b[1])<<8 | int(b[2])
			b = b[3:]
		}
		if n > len(b) {
			return 0, nil, false
		}
		if id == 0 {
			return packetType, append(fourCC[:4:4], b[:n]...), true
		}
		b = b[n:]
	}
	return 0, nil, false
}

// clock unwraps RTMP's timestamps, milliseconds modulo 2^32 and shared by audio and video. A step of more than 24.8 days
// forwards counts as one backwards.
type clock struct {
	last    uint32
	at      int64 // milliseconds
	started bool
}

func (c *clock) unwrap(timestamp uint32) time.Duration {
	if !c.started {
		c.started, c.last, c.at = true, timestamp, int64(timestamp)
	}
	c.at += int64(int32(timestamp - c.last))
	c.last = timestamp
	return time.Duration(c.at) * time.Millisecond
}

// eachTag calls f for the tags of an aggregate message, section 7.1.6: FLV tags whose timestamps count from the first one's.
func eachTag(p rtmpwire.Packet, f func(rtmpwire.Packet) error) error {
	const header, trailer = 11, 4
	var first uint32
	for b, n := p.Body, 0; len(b) >= header; n++ {
		size := int(b[1])<<16 | int(b[2])<<8 | int(b[3])
		t := uint32(b[7])<<24 | uint32(b[4])<<16 | uint32(b[5])<<8 | uint32(b[6])
		if n == 0 {
			first = t
		}
		if size > len(b)-header {
			return fmt.Errorf("%w: aggregate ends inside a tag", errTag)
		}
		if err := f(rtmpwire.Packet{Kind: b[0] & 0x1f, Timestamp: p.Timestamp + t - first, Body: b[header : header+size : header+size]}); err != nil {
			return err
		}
		b = b[min(len(b), header+size+trailer):]
	}
	return nil
}
