package rtmp

import (
	"errors"
	"fmt"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
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
	codec   frame.Codec
	track   uint8         // of a multitrack message; 0 otherwise
	offset  time.Duration // composition time: PTS - DTS, may be negative
	fine    time.Duration // to be added to the message's time, which is in milliseconds
	data    []byte
}

// errTag is a single body that can not be read: it is passed over and counted.
var errTag = errors.New("malformed media message")

// What may be sent, as an encoder is told that sends something else.
const (
	videoWanted = "H.264, HEVC, AV1 or VP9"
	audioWanted = "AAC, Opus, FLAC, AC-3 or MP3"
)

// Codecs of the FLV specification, annex E.4.2.1 and E.4.3.1, as people know them, that are not taken; 13 is unofficial.
var (
	videoCodecs = map[byte]string{2: "Sorenson H.263", 3: "Screen Video", 4: "VP6", 5: "VP6 with alpha", 6: "Screen Video 2", 13: "AV1 outside Enhanced RTMP"}                                                         //nolint:gochecknoglobals // a table
	audioCodecs = map[byte]string{0: "linear PCM", 1: "ADPCM", 3: "linear PCM", 4: "Nellymoser", 5: "Nellymoser", 6: "Nellymoser", 7: "G.711 A-law", 8: "G.711 mu-law", 11: "Speex", 13: "Opus outside Enhanced RTMP"} //nolint:gochecknoglobals // a table
)

const (
	flvAVC          = 7
	flvHEVC         = 12 // unofficial; encoders that are older than Enhanced RTMP send it
	flvAAC          = 10
	flvMP3          = 2
	flvMP3Low       = 14 // at 8 kHz
	flvExtendedBit  = 0x80
	flvExtendedFlag = 9 // audio: the codec id that means an extended header
	flvCommandFrame = 5
)

func unsupported(kind, name, wanted string) error {
	return ingest.Unsupported(fmt.Sprintf("%s codec %s is not supported, send %s", kind, name, wanted))
}

func named(names map[byte]string, id byte) string {
	if name := names[id]; name != "" {
		return name
	}
	return fmt.Sprintf("number %d", id)
}

// parseVideo reads a video message: FLV annex E.4.3, and Enhanced RTMP. want is the track that is kept, anyTrack before there is one.
func parseVideo(b []byte, want int) (tag, error) {
	if len(b) == 0 {
		return tag{}, nil // an empty message is a keep-alive of some encoders
	}
	if b[0]&flvExtendedBit != 0 {
		return extendedVideo(b, want)
	}
	if b[0]>>4 == flvCommandFrame || want > 0 {
		return tag{}, nil
	}
	t := tag{codec: frame.H264}
	switch id := b[0] & 15; id {
	case flvAVC:
	case flvHEVC:
		t.codec = frame.HEVC
	default:
		return tag{}, unsupported("video", named(videoCodecs, id), videoWanted)
	}
	if len(b) < 5 {
		return tag{}, fmt.Errorf("%w: video of %d bytes", errTag, len(b))
	}
	switch b[1] {
	case 0:
		t.content, t.data = configuration, b[5:]
	case 1:
		t.content, t.offset, t.data = mediaFrame, signed24(b[2:]), b[5:]
	default:
		return tag{}, nil
	}
	return t, nil
}

// parseAudio reads an audio message: FLV annex E.4.2, and Enhanced RTMP.
func parseAudio(b []byte, want int) (tag, error) {
	if len(b) == 0 {
		return tag{}, nil
	}
	id := b[0] >> 4
	if id == flvExtendedFlag {
		return extendedAudio(b, want)
	}
	if want > 0 {
		return tag{}, nil
	}
	switch id {
	case flvAAC:
	case flvMP3, flvMP3Low:
		return tag{content: mediaFrame, codec: frame.MP3, data: b[1:]}, nil
	default:
		return tag{}, unsupported("audio", named(audioCodecs, id), audioWanted)
	}
	if len(b) < 2 {
		return tag{}, fmt.Errorf("%w: audio of %d bytes", errTag, len(b))
	}
	switch b[1] {
	case 0:
		return tag{content: configuration, codec: frame.AAC, data: b[2:]}, nil
	case 1:
		return tag{content: mediaFrame, codec: frame.AAC, data: b[2:]}, nil
	}
	return tag{}, nil
}

func signed24(b []byte) time.Duration {
	v := int32(uint32(b[0])<<24|uint32(b[1])<<16|uint32(b[2])<<8) >> 8
	return time.Duration(v) * time.Millisecond
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
