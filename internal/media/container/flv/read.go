package flv

import (
	"errors"
	"fmt"
	"time"

	"millrace/internal/media/frame"
)

// Content is what a body carries.
type Content uint8

// The contents.
const (
	Nothing       Content = iota // metadata, ends of sequence, other tracks
	Configuration                // a sequence header
	MediaFrame
)

// Body is an audio or video message of RTMP, or a tag, without its header. Data shares the message's memory.
type Body struct {
	Content Content
	Codec   frame.Codec
	Track   uint8         // of a multitrack message; 0 otherwise
	Offset  time.Duration // composition time: PTS - DTS, may be negative
	Fine    time.Duration // below 1 ms, to be added to the message's time, which is in milliseconds
	Data    []byte
}

// ErrMalformed means that what is there can not be read: of a message that alone, of a stream all that follows.
var ErrMalformed = errors.New("malformed media message")

// UnsupportedError names a codec that is not taken, and those that are. Its text is for people.
type UnsupportedError string

func (u UnsupportedError) Error() string { return string(u) }

// AnyTrack is what parsers are told before a kind's track is chosen.
const AnyTrack = -1

// What may be sent, as an encoder is told that sends something else.
const (
	videoWanted = "H.264, HEVC, AV1 or VP9"
	audioWanted = "AAC, Opus, FLAC, AC-3 or MP3"
)

// Codecs of the FLV specification, annex E.4.2.1 and E.4.3.1, as people know them, that are not taken; 13 is
// unofficial.
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
	return UnsupportedError(fmt.Sprintf("%s codec %s is not supported, send %s", kind, name, wanted))
}

func named(names map[byte]string, id byte) string {
	if name := names[id]; name != "" {
		return name
	}
	return fmt.Sprintf("number %d", id)
}

// ParseVideo reads the body of a video message: FLV annex E.4.3, and Enhanced RTMP. want is the track that is kept,
// AnyTrack before there is one.
func ParseVideo(b []byte, want int) (Body, error) {
	if len(b) == 0 {
		return Body{}, nil // an empty message is a keep-alive of some encoders
	}
	if b[0]&flvExtendedBit != 0 {
		return extendedVideo(b, want)
	}
	if b[0]>>4 == flvCommandFrame || want > 0 {
		return Body{}, nil
	}
	t := Body{Codec: frame.H264}
	switch id := b[0] & 15; id {
	case flvAVC:
	case flvHEVC:
		t.Codec = frame.HEVC
	default:
		return Body{}, unsupported("video", named(videoCodecs, id), videoWanted)
	}
	if len(b) < 5 {
		return Body{}, fmt.Errorf("%w: video of %d bytes", ErrMalformed, len(b))
	}
	switch b[1] {
	case 0:
		t.Content, t.Data = Configuration, b[5:]
	case 1:
		t.Content, t.Offset, t.Data = MediaFrame, signed24(b[2:]), b[5:]
	default:
		return Body{}, nil
	}
	return t, nil
}

// ParseAudio reads the body of an audio message: FLV annex E.4.2, and Enhanced RTMP.
func ParseAudio(b []byte, want int) (Body, error) {
	if len(b) == 0 {
		return Body{}, nil
	}
	id := b[0] >> 4
	if id == flvExtendedFlag {
		return extendedAudio(b, want)
	}
	if want > 0 {
		return Body{}, nil
	}
	switch id {
	case flvAAC:
	case flvMP3, flvMP3Low:
		return Body{Content: MediaFrame, Codec: frame.MP3, Data: b[1:]}, nil
	default:
		return Body{}, unsupported("audio", named(audioCodecs, id), audioWanted)
	}
	if len(b) < 2 {
		return Body{}, fmt.Errorf("%w: audio of %d bytes", ErrMalformed, len(b))
	}
	switch b[1] {
	case 0:
		return Body{Content: Configuration, Codec: frame.AAC, Data: b[2:]}, nil
	case 1:
		return Body{Content: MediaFrame, Codec: frame.AAC, Data: b[2:]}, nil
	}
	return Body{}, nil
}

func signed24(b []byte) time.Duration {
	v := int32(uint32(b[0])<<24|uint32(b[1])<<16|uint32(b[2])<<8) >> 8
	return time.Duration(v) * time.Millisecond
}

// EachTag calls f for the tags of RTMP's aggregate message, section 7.1.6. after is a tag's time after the first one's,
// in milliseconds modulo 2^32.
func EachTag(aggregate []byte, f func(kind uint8, after uint32, body []byte) error) error {
	const header, trailer = 11, 4
	var first uint32
	for b, n := aggregate, 0; len(b) >= header; n++ {
		size := int(b[1])<<16 | int(b[2])<<8 | int(b[3])
		t := uint32(b[7])<<24 | uint32(b[4])<<16 | uint32(b[5])<<8 | uint32(b[6])
		if n == 0 {
			first = t
		}
		if size > len(b)-header {
			return fmt.Errorf("%w: aggregate ends inside a tag", ErrMalformed)
		}
		if err := f(b[0]&0x1f, t-first, b[header:header+size:header+size]); err != nil {
			return err
		}
		b = b[min(len(b), header+size+trailer):]
	}
	return nil
}
