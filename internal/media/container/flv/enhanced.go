package flv

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"millrace/internal/media/frame"
)

// Packet types of Enhanced RTMP version 2, VideoPacketType and AudioPacketType.
const (
	exSequenceStart = 0
	exCodedFrames   = 1
	exFramesX       = 3 // video: coded frames whose composition time is 0
	exMetadata      = 4 // video: colours as AMF0, which the codec's own header has, too
	exModEx         = 7

	exVideoMultitrack = 6
	exAudioMultitrack = 5
)

// What else there is says nothing that is needed here: ends of sequence (2), the description that MPEG-TS has of AV1
// (5), and the order of an audio track's channels (audio's 4), which the codec's header has as well.

// VideoFourCCs and AudioFourCCs are the four-character codes that are taken, sections "Enhancing Video" and "Enhancing
// Audio".
var (
	VideoFourCCs = []string{"avc1", "hvc1", "av01", "vp09"}         //nolint:gochecknoglobals // constants
	AudioFourCCs = []string{"mp4a", "Opus", "fLaC", "ac-3", ".mp3"} //nolint:gochecknoglobals // constants
)

func videoCodec(fourCC []byte) (frame.Codec, error) {
	switch string(fourCC) {
	case "avc1":
		return frame.H264, nil
	case "hvc1":
		return frame.HEVC, nil
	case "av01":
		return frame.AV1, nil
	case "vp09":
		return frame.VP9, nil
	case "vp08":
		return "", unsupported("video", "VP8", videoWanted)
	case "vvc1":
		return "", unsupported("video", "VVC", videoWanted)
	}
	return "", unsupported("video", plain(fourCC), videoWanted)
}

func audioCodec(fourCC []byte) (frame.Codec, error) {
	switch string(fourCC) {
	case "mp4a":
		return frame.AAC, nil
	case "Opus":
		return frame.Opus, nil
	case "fLaC":
		return frame.FLAC, nil
	case "ac-3":
		return frame.AC3, nil
	case ".mp3":
		return frame.MP3, nil
	case "ec-3":
		return "", unsupported("audio", "E-AC-3", audioWanted)
	}
	return "", unsupported("audio", plain(fourCC), audioWanted)
}

// plain makes a code of unknown letters fit to be shown.
func plain(fourCC []byte) string {
	letters := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return -1
		}
		return c
	}, strings.TrimSpace(string(fourCC)))
	if letters != "" {
		return letters
	}
	return fmt.Sprintf("%x", fourCC)
}

// extendedVideo reads a message with ExVideoTagHeader.
func extendedVideo(b []byte, want int) (Body, error) {
	e, err := unwrap(b, exVideoMultitrack, want)
	// With a command (seek begins, ends) there is one byte more and no media; only metadata may come with any frame
	// type.
	if command := b[0]>>4&7 == flvCommandFrame; err != nil || e.fourCC == nil || command && e.kind != exMetadata {
		return Body{}, err
	}
	t := Body{Track: e.track, Fine: e.fine, Data: e.body}
	switch e.kind {
	case exSequenceStart:
		t.Content = Configuration
	case exCodedFrames, exFramesX:
		t.Content = MediaFrame
	default:
		return Body{}, nil
	}
	if t.Codec, err = videoCodec(e.fourCC); err != nil {
		return Body{}, err
	}
	// the others have no composition time
	if e.kind == exCodedFrames && (t.Codec == frame.H264 || t.Codec == frame.HEVC) {
		if len(t.Data) < 3 {
			return Body{}, fmt.Errorf("%w: extended video without composition time", ErrMalformed)
		}
		t.Offset, t.Data = signed24(t.Data), t.Data[3:]
	}
	return t, nil
}

// extendedAudio reads a message with ExAudioTagHeader.
func extendedAudio(b []byte, want int) (Body, error) {
	e, err := unwrap(b, exAudioMultitrack, want)
	if err != nil || e.fourCC == nil {
		return Body{}, err
	}
	t := Body{Track: e.track, Fine: e.fine, Data: e.body}
	switch e.kind {
	case exSequenceStart:
		t.Content = Configuration
	case exCodedFrames:
		t.Content = MediaFrame
	default:
		return Body{}, nil
	}
	if t.Codec, err = audioCodec(e.fourCC); err != nil {
		return Body{}, err
	}
	return t, nil
}

// extended is one track's part of a message. Without a code there is none that is wanted.
type extended struct {
	kind   byte // packet type
	track  uint8
	fourCC []byte
	fine   time.Duration
	body   []byte
}

// unwrap takes modifiers and the layer of several tracks off a message.
func unwrap(b []byte, multitrack byte, want int) (extended, error) {
	e := extended{kind: b[0] & 15}
	b = b[1:]
	for e.kind == exModEx {
		var ok bool
		if b, ok = e.modifier(b); !ok {
			return extended{}, fmt.Errorf("%w: modifier", ErrMalformed)
		}
	}
	if e.kind == multitrack {
		return e.pick(b, want)
	}
	if len(b) < 4 {
		return extended{}, fmt.Errorf("%w: extended message of %d bytes", ErrMalformed, len(b)+1)
	}
	if want > 0 {
		return extended{}, nil
	}
	e.fourCC, e.body = b[:4], b[4:]
	return e, nil
}

// modifier reads one ModEx block: size, data, its type and the packet type that follows.
func (e *extended) modifier(b []byte) (rest []byte, ok bool) {
	const nanoseconds, most = 0, time.Millisecond
	if len(b) < 1 {
		return nil, false
	}
	n := int(b[0]) + 1
	b = b[1:]
	if n == 256 {
		if len(b) < 2 {
			return nil, false
		}
		n = int(binary.BigEndian.Uint16(b)) + 1
		b = b[2:]
	}
	if len(b) < n+1 {
		return nil, false
	}
	if b[n]>>4 == nanoseconds && n >= 3 {
		if fine := time.Duration(b[0])<<16 | time.Duration(b[1])<<8 | time.Duration(b[2]); fine < most {
			e.fine = fine
		}
	}
	e.kind = b[n] & 15
	return b[n+1:], true
}

// pick finds one track in a multitrack message: the wanted one, or, before one is chosen, number 0, which is the one
// that is meant for players that know one only, or else the first.
func (e *extended) pick(b []byte, want int) (extended, error) {
	const oneTrack, manyCodecs = 0, 2
	short := fmt.Errorf("%w: tracks", ErrMalformed)
	if len(b) < 1 {
		return extended{}, short
	}
	layout := b[0] >> 4
	found := extended{kind: b[0] & 15, fine: e.fine}
	b = b[1:]
	var shared []byte
	if layout != manyCodecs {
		if len(b) < 4 {
			return extended{}, short
		}
		shared, b = b[:4], b[4:]
	}
	for len(b) > 0 {
		fourCC := shared
		if fourCC == nil {
			if len(b) < 4 {
				return extended{}, short
			}
			fourCC, b = b[:4], b[4:]
		}
		if len(b) < 1 {
			return extended{}, short
		}
		id, n := b[0], len(b)-1
		b = b[1:]
		if layout != oneTrack {
			if len(b) < 3 {
				return extended{}, short
			}
			n = int(b[0])<<16 | int(b[1])<<8 | int(b[2])
			b = b[3:]
		}
		if n > len(b) {
			return extended{}, short
		}
		chosen := int(id) == want || want == AnyTrack && id == 0
		if chosen || want == AnyTrack && found.fourCC == nil {
			found.track, found.fourCC, found.body = id, fourCC, b[:n:n]
		}
		if chosen {
			return found, nil
		}
		b = b[n:]
	}
	return found, nil
}
