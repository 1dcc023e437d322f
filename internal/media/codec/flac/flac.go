// Package flac reads what the rest of the media plane needs to know about a FLAC stream, RFC 9639: STREAMINFO and frame
// headers. Bytes in, values out: it must never know files, sockets, time of day or a logger, and it starts no
// goroutines.
package flac

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	library "github.com/bluenviron/mediacommon/v2/pkg/codecs/flac"

	"millrace/internal/media/frame"
)

// ErrMalformed is wrapped by every error of this package: the bytes are not FLAC as the standard has it.
var ErrMalformed = errors.New("malformed FLAC")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// InfoSize is the size of STREAMINFO without its block header, in bytes.
const InfoSize = 34

// CodecString returns the RFC 6381 name.
func CodecString() string { return "fLaC" }

// StreamInfo finds STREAMINFO in what containers and encoders have in front of the frames: with "fLaC" or without, with
// the block's header (as in dfLa) or without.
func StreamInfo(b []byte) ([]byte, error) {
	b = bytes.TrimPrefix(b, []byte("fLaC"))
	if len(b) >= 4+InfoSize && b[0]&0x7f == 0 && b[1] == 0 && b[2] == 0 && b[3] == InfoSize {
		b = b[4:]
	}
	if len(b) < InfoSize {
		return nil, malformed("STREAMINFO of %d bytes", len(b))
	}
	return b[:InfoSize:InfoSize], nil
}

// TrackConfig makes the track configuration of a stream with this STREAMINFO.
func TrackConfig(info []byte) (frame.Config, error) {
	var s library.StreamInfo
	if len(info) != InfoSize {
		return frame.Config{}, malformed("STREAMINFO of %d bytes", len(info))
	}
	if err := s.Unmarshal(info); err != nil {
		return frame.Config{}, fmt.Errorf("%w: read STREAMINFO: %w", ErrMalformed, err)
	}
	if s.SampleRate == 0 || s.MaxBlockSize < 16 || s.BitDepth < 4 {
		return frame.Config{}, malformed("STREAMINFO: %d Hz, blocks of %d, %d bits", s.SampleRate, s.MaxBlockSize,
			s.BitDepth)
	}
	return frame.Config{
		Kind:       frame.Audio,
		Codec:      frame.FLAC,
		Header:     info,
		SampleRate: int(s.SampleRate),
		Channels:   int(s.ChannelCount),
	}, nil
}

// Info makes the STREAMINFO of a stream of 16-bit samples in blocks of 4096, section 8.2; nil for what it has no place
// for.
func Info(sampleRate, channels int) []byte {
	const block, bits = 4096, 16
	if sampleRate < 1 || sampleRate >= 1<<20 || channels < 1 || channels > 8 {
		return nil
	}
	b := make([]byte, 0, InfoSize)
	b = binary.BigEndian.AppendUint16(b, block)
	b = binary.BigEndian.AppendUint16(b, block)
	b = append(b, 0, 0, 0, 0, 0, 0) // the lengths of frames are not known
	b = binary.BigEndian.AppendUint64(b, uint64(sampleRate)<<44|uint64(channels-1)<<41|uint64(bits-1)<<36)
	return append(b, make([]byte, 16)...) // nor is the sum of the samples
}

// MaxSamples is how many samples of each channel the longest frame of a stream has.
func MaxSamples(info []byte) int64 {
	if len(info) < 4 {
		return 0
	}
	return int64(info[2])<<8 | int64(info[3])
}

// Samples is how many samples of each channel a frame has, section 9.1.1; 0 when the frame can't be read.
func Samples(f []byte) int64 {
	if len(f) < 6 || f[0] != 0xff || f[1]&0xfe != 0xf8 {
		return 0
	}
	at, ok := codedNumber(f)
	switch code := f[2] >> 4; {
	case code == 0 || !ok:
		return 0
	case code == 1:
		return 192
	case code <= 5:
		return 144 << code
	case code == 6 && len(f) > at:
		return int64(f[at]) + 1
	case code == 7 && len(f) > at+1:
		return int64(f[at])<<8 + int64(f[at+1]) + 1
	case code >= 8:
		return 1 << code
	}
	return 0
}

// codedNumber passes over the frame's number, which is written as UTF-8 writes characters, and returns where it ends.
func codedNumber(f []byte) (end int, ok bool) {
	const at = 4
	n := 0
	for c := f[at]; c&0x80 != 0; c <<= 1 {
		n++
	}
	switch n {
	case 0:
		return at + 1, true
	case 1, 8:
		return 0, false
	}
	return at + n, len(f) >= at+n
}
