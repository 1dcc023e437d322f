// Package frame is the vocabulary of the media plane: a track's configuration and one access unit of it. No I/O, no clock.
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

// The codecs that this version packages.
const (
	H264 Codec = "h264"
	AAC  Codec = "aac"
)

// Config is the decoder configuration of one track. A new Config in mid-stream means that the parameters changed.
type Config struct {
	Kind  Kind
	Codec Codec

	// H.264: SPS and PPS as NAL units without start code or length.
	SPS, PPS []byte
	// AAC: AudioSpecificConfig, ISO 14496-3 section 1.6.2.1.
	ASC []byte

	Width, Height int     // video, in pixels, after cropping
	FrameRate     float64 // video, frames per second as announced by the stream; 0 when unknown
	SampleRate    int     // audio, Hz
	Channels      int     // audio
}

// Frame is one access unit. It is immutable once it is handed on; every reader shares Data.
type Frame struct {
	Kind Kind
	// DTS is the decoding time. PTS-DTS may be negative only if the encoder is broken.
	// Before the session: the encoder's clock, unwrapped, any origin. After it: the asset's clock, from 0, only growing.
	DTS, PTS time.Duration
	// Duration is filled by the session; 0 before it.
	Duration time.Duration
	Key      bool // video: an IDR; audio: always true
	// Data is length-prefixed NAL units (AVCC, 4 bytes) for H.264 and one raw_data_block for AAC.
	Data []byte
	// Received is when its last byte came off the socket.
	Received time.Time
}
