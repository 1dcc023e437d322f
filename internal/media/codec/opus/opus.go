// Package opus reads what the rest of the media plane needs to know about an Opus stream: its header in either form and
// the length of packets. Bytes in, values out: it must never know files, sockets, time of day or a logger, and it
// starts no goroutines.
package opus

import (
	"encoding/binary"
	"errors"
	"fmt"

	library "github.com/bluenviron/mediacommon/v2/pkg/codecs/opus"

	"millrace/internal/media/frame"
)

// SampleRate is what Opus counts in whatever it encodes, in Hz.
const SampleRate = 48000

// MaxSamples is the length of the longest packet, 120 ms.
const MaxSamples = 5760

// preSkip is what libopus delays by at 48 kHz: what decoders throw away where nobody said how much.
const preSkip = 312

// ErrMalformed is wrapped by every error of this package: the bytes are not Opus as the standard has it.
var ErrMalformed = errors.New("malformed Opus")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Samples is the length of a packet at 48 kHz, RFC 6716 section 3.1; 0 when the packet can't be read.
func Samples(packet []byte) int64 {
	if n := library.PacketDuration2(packet); n > 0 && n <= MaxSamples {
		return n
	}
	return 0
}

// CodecString returns the RFC 6381 name.
func CodecString() string { return "opus" }

// Header makes an OpusSpecificBox for so many channels in the usual order, 1 to 8.
func Header(channels int) ([]byte, error) {
	if channels < 1 || channels > 8 {
		return nil, malformed("%d channels", channels)
	}
	b := []byte{0, byte(channels)}
	b = binary.BigEndian.AppendUint16(b, preSkip)
	b = binary.BigEndian.AppendUint32(b, SampleRate)
	b = append(b, 0, 0)
	if channels <= 2 {
		return append(b, 0), nil
	}
	b = append(b, 1)
	return append(b, mappings[channels-3]...), nil
}

// mappings are streams, coupled streams and the order of channels from three on, RFC 7845 section 5.1.1.2.
var mappings = [...][]byte{ //nolint:gochecknoglobals // a table
	{2, 1, 0, 2, 1},
	{2, 2, 0, 1, 2, 3},
	{3, 2, 0, 4, 1, 2, 3},
	{4, 2, 0, 4, 1, 2, 3, 5},
	{4, 3, 0, 4, 1, 2, 3, 5, 6},
	{5, 3, 0, 6, 1, 2, 3, 4, 5, 7},
}

// FromHead turns an identification header, RFC 7845 section 5.1, into an OpusSpecificBox. It is little-endian; one
// whose input sample rate makes sense only the other way round is read so: mediacommon writes it like that, and with it
// MediaMTX.
func FromHead(head []byte) ([]byte, error) {
	if len(head) < 19 || string(head[:8]) != "OpusHead" || head[8]>>4 != 0 {
		return nil, malformed("identification header of %d bytes", len(head))
	}
	const fastest = 1 << 20 // Hz, of what was encoded
	var order binary.ByteOrder = binary.LittleEndian
	if order.Uint32(head[12:]) > fastest && binary.BigEndian.Uint32(head[12:]) <= fastest {
		order = binary.BigEndian
	}
	b := []byte{0, head[9]}
	b = binary.BigEndian.AppendUint16(b, order.Uint16(head[10:]))
	b = binary.BigEndian.AppendUint32(b, order.Uint32(head[12:]))
	b = binary.BigEndian.AppendUint16(b, order.Uint16(head[16:]))
	b = append(b, head[18:]...)
	n, err := size(b)
	if err != nil {
		return nil, err
	}
	return b[:n], nil
}

// size is how many bytes of b an OpusSpecificBox has, Opus in ISO BMFF section 4.3.2.
func size(b []byte) (int, error) {
	if len(b) < 11 || b[0] != 0 {
		return 0, malformed("header of %d bytes", len(b))
	}
	channels, family := int(b[1]), b[10]
	switch {
	case channels == 0, family == 0 && channels > 2, family == 1 && channels > 8:
		return 0, malformed("%d channels in mapping family %d", channels, family)
	case family == 0:
		return 11, nil
	case len(b) < 13+channels:
		return 0, malformed("header ends inside its channel mapping")
	}
	streams, coupled := int(b[11]), int(b[12])
	if streams == 0 || coupled > streams || streams+coupled > 255 {
		return 0, malformed("%d streams, %d of them coupled", streams, coupled)
	}
	return 13 + channels, nil
}

// TrackConfig makes the track configuration of a stream with this OpusSpecificBox; see FromHead and Header.
func TrackConfig(header []byte) (frame.Config, error) {
	n, err := size(header)
	if err != nil {
		return frame.Config{}, err
	}
	return frame.Config{
		Kind:       frame.Audio,
		Codec:      frame.Opus,
		Header:     header[:n:n],
		SampleRate: SampleRate,
		Channels:   int(header[1]),
	}, nil
}
