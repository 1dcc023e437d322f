// Package frame defines the basic types of the media plane: a track's configuration and one access unit of it. No I/O,
// no clock.
package frame

import "time"

// Kind is the kind of a track.
type Kind uint8

// The kinds.
const (
	Video Kind = iota
	Audio
	Text
)

func (k Kind) String() string { return [...]string{"video", "audio", "text"}[k] }

// Codec names a codec.
type Codec string

// The codecs that encoders send. VP8 has no place in CMAF: it is known so that it can be named and encoded again.
const (
	H264 Codec = "h264"
	HEVC Codec = "hevc"
	AV1  Codec = "av1"
	VP9  Codec = "vp9"
	VP8  Codec = "vp8"

	AAC  Codec = "aac"
	Opus Codec = "opus"
	FLAC Codec = "flac"
	AC3  Codec = "ac3"
	MP3  Codec = "mp3"
)

// VideoRange is how a picture's light is coded, by the names that VIDEO-RANGE of a playlist has, RFC 8216bis
// section 4.4.6.2.
type VideoRange string

// The ranges.
const (
	SDR VideoRange = ""    // BT.709 and its like, or not known
	PQ  VideoRange = "PQ"  // SMPTE ST 2084
	HLG VideoRange = "HLG" // ARIB STD-B67
)

// RangeOf is what a transfer characteristics number means, ITU-T H.273 table 3.
func RangeOf(transfer uint8) VideoRange {
	switch transfer {
	case 16:
		return PQ
	case 18:
		return HLG
	}
	return SDR
}

// Config is the decoder configuration of one track. A new Config in mid-stream means that the parameters changed.
type Config struct {
	Kind  Kind
	Codec Codec

	// H.264 and HEVC: parameter sets as NAL units without start code or length. VPS is HEVC's alone.
	VPS, SPS, PPS []byte
	// Sets are further parameter sets that pictures may refer to, in the stream's order; nil in most streams.
	Sets [][]byte
	// AAC: AudioSpecificConfig, ISO 14496-3 section 1.6.2.1.
	ASC []byte
	// Header is what the other codecs' sample entries carry: the sequence header OBU with its size field (AV1), the
	// VPCodecConfigurationRecord without the box's version and flags (VP9), OpusSpecificBox (Opus), STREAMINFO of 34
	// bytes (FLAC), AC3SpecificBox (AC-3). Nothing for VP8 and MP3.
	Header []byte

	Width, Height int     // video, in pixels, after cropping
	FrameRate     float64 // video, frames per second as announced by the stream; 0 when unknown
	SampleRate    int     // audio, Hz
	Channels      int     // audio
}

// Frame is one access unit. It is immutable once it is handed on; every reader shares Data.
type Frame struct {
	Kind Kind
	// DTS is the decoding time. PTS-DTS may be negative only if the encoder is broken. Before the session: the
	// encoder's clock, unwrapped, any origin. After it: the asset's clock, from 0, only growing.
	DTS, PTS time.Duration
	// Duration is filled by the session; 0 before it. A picture at a variable rate lasts longer.
	Duration time.Duration
	Key      bool // video: an IDR; audio: always true
	// Data is one access unit in the form that ISO BMFF samples have: length-prefixed NAL units (4 bytes) for H.264 and
	// HEVC, OBUs with size fields and without temporal delimiters for AV1, a frame or superframe for VP8 and VP9, one
	// raw_data_block for AAC, one packet or frame for every other audio codec.
	Data []byte
	// Received is when its last byte came off the socket.
	Received time.Time
}
