// Package mp3 reads what the rest of the media plane needs to know about MPEG audio layer III, ISO 11172-3 and 13818-3:
// the headers of its frames. Bytes in, values out: it must never know files, sockets, time of day or a logger, and it
// starts no goroutines.
package mp3

import (
	"errors"
	"fmt"

	"millrace/internal/media/frame"
)

// HeaderSize is how many bytes Parse needs.
const HeaderSize = 4

// ErrMalformed is wrapped by every error of this package: the bytes are not MP3 as the standard has it.
var ErrMalformed = errors.New("malformed MP3")

// CodecString returns the RFC 6381 name.
func CodecString() string { return "mp4a.40.34" }

// Header is what a frame says.
type Header struct {
	Size       int // bytes of the whole frame
	SampleRate int // Hz
	Channels   int
	Samples    int64 // of each channel: 1152, or 576 at the lower sample rates
}

// Tables of ISO 11172-3 section 2.4.2.3 and ISO 13818-3 section 2.4.2.3: kbit/s of layer III, and Hz of MPEG-1.
var (
	kilobits1 = [...]int{32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320} //nolint:gochecknoglobals // a table
	kilobits2 = [...]int{8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}     //nolint:gochecknoglobals // a table
	rates     = [...]int{44100, 48000, 32000}                                           //nolint:gochecknoglobals // a table
)

// Parse reads the beginning of a frame. Layers I and II, and frames of "free" bit rate, are refused.
func Parse(b []byte) (Header, error) {
	if len(b) < HeaderSize || b[0] != 0xff || b[1]&0xe0 != 0xe0 {
		return Header{}, fmt.Errorf("%w: no frame in %d bytes", ErrMalformed, len(b))
	}
	version, layer := b[1]>>3&3, b[1]>>1&3 // 3 MPEG-1, 2 MPEG-2, 0 MPEG-2.5
	kilobits, rate := int(b[2]>>4), int(b[2]>>2&3)
	if version == 1 || layer != 1 || kilobits == 0 || kilobits == 15 || rate == 3 {
		return Header{}, fmt.Errorf("%w: header %x", ErrMalformed, b[:HeaderSize])
	}
	h := Header{SampleRate: rates[rate], Channels: 2, Samples: 1152}
	bitrate := kilobits1[kilobits-1] * 1000
	if version != 3 {
		h.SampleRate, h.Samples, bitrate = h.SampleRate/2, 576, kilobits2[kilobits-1]*1000
	}
	if version == 0 {
		h.SampleRate /= 2
	}
	if b[3]>>6 == 3 {
		h.Channels = 1
	}
	h.Size = int(h.Samples)/8*bitrate/h.SampleRate + int(b[2]>>1&1)
	return h, nil
}

// TrackConfig makes the track configuration of a stream from one of its frames.
func TrackConfig(data []byte) (frame.Config, error) {
	h, err := Parse(data)
	if err != nil {
		return frame.Config{}, err
	}
	return frame.Config{Kind: frame.Audio, Codec: frame.MP3, SampleRate: h.SampleRate, Channels: h.Channels}, nil
}
