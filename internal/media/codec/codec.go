// Package codec describes tracks of any codec, using the packages below it, one per codec. Bytes in, values out: it
// must never know files, sockets, time of day or a logger, and it starts no goroutines.
package codec

import (
	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/ac3"
	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/flac"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/mp3"
	"millrace/internal/media/codec/opus"
	"millrace/internal/media/codec/vp8"
	"millrace/internal/media/codec/vp9"
	"millrace/internal/media/frame"
)

// Name is the RFC 6381 name of a track's stream, as CODECS of a playlist has it; "" when its header can't be read.
func Name(c frame.Config) string {
	switch c.Codec {
	case frame.H264:
		return h264.CodecString(c.SPS)
	case frame.HEVC:
		return hevc.CodecString(c.SPS)
	case frame.AV1:
		return av1.CodecString(c.Header)
	case frame.VP9:
		return vp9.CodecString(c.Header)
	case frame.VP8:
		return vp8.CodecString()
	case frame.AAC:
		return aac.CodecString(c.ASC)
	case frame.Opus:
		return opus.CodecString()
	case frame.FLAC:
		return flac.CodecString()
	case frame.AC3:
		return ac3.CodecString()
	case frame.MP3:
		return mp3.CodecString()
	}
	return ""
}

// Shape is the shape of a video track's pixels, 1 and 1 when square or not said.
func Shape(c frame.Config) (w, h int) {
	switch c.Codec { //nolint:exhaustive // the others say nothing about it
	case frame.H264:
		if i, err := h264.Info(c.SPS); err == nil {
			return i.PARWidth, i.PARHeight
		}
	case frame.HEVC:
		if i, err := hevc.Info(c.SPS); err == nil {
			return i.PARWidth, i.PARHeight
		}
	}
	return 1, 1
}

// Range is how a video track's light is coded; SDR when its header doesn't say, or can't be read.
func Range(c frame.Config) frame.VideoRange {
	var transfer uint8
	switch c.Codec { //nolint:exhaustive // VP8 knows one only, the others are sound
	case frame.H264:
		if i, err := h264.Info(c.SPS); err == nil {
			transfer = i.Colour.Transfer
		}
	case frame.HEVC:
		if i, err := hevc.Info(c.SPS); err == nil {
			transfer = i.Colour.Transfer
		}
	case frame.AV1:
		if i, err := av1.Info(c.Header); err == nil {
			transfer = i.Colour.Transfer
		}
	case frame.VP9:
		transfer = vp9.Transfer(c.Header)
	}
	return frame.RangeOf(transfer)
}

// Clock is what a sound track's frames are counted in.
type Clock struct {
	Rate   int64 // samples per second, at least 1
	Length int64 // samples of one frame: of every one, or of the usual (Opus) or longest (FLAC) one where they differ
	codec  frame.Codec
}

// ClockOf returns the clock of a sound track.
func ClockOf(c frame.Config) Clock {
	k := Clock{Rate: int64(max(c.SampleRate, 1)), Length: 1024, codec: c.Codec}
	switch c.Codec { //nolint:exhaustive // of sound
	case frame.AAC:
		if p, err := aac.Parse(c.ASC); err == nil {
			k.Rate, k.Length = int64(max(p.SampleRate, 1)), int64(p.SamplesPerFrame)
		}
	case frame.Opus:
		k.Rate, k.Length = opus.SampleRate, 960
	case frame.FLAC:
		k.Length = max(flac.MaxSamples(c.Header), 16)
	case frame.AC3:
		k.Length = ac3.Samples
	case frame.MP3:
		if k.Length = 1152; c.SampleRate < 32000 { // ISO 13818-3: half a frame at the lower rates
			k.Length = 576
		}
	}
	return k
}

// Samples is how long one frame of the track is. One that does not say it, and should, counts as the usual one.
func (c Clock) Samples(data []byte) int64 {
	n := int64(0)
	switch c.codec { //nolint:exhaustive // frames of the others are of one length
	case frame.Opus:
		n = opus.Samples(data)
	case frame.FLAC:
		n = flac.Samples(data)
	}
	if n <= 0 {
		return c.Length
	}
	return n
}
