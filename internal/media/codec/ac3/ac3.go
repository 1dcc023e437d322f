// Package ac3 reads what the rest of the media plane needs to know about an AC-3 stream, ATSC A/52: the headers of its
// syncframes. Bytes in, values out: it must never know files, sockets, time of day or a logger, and it starts no
// goroutines.
package ac3

import (
	"errors"
	"fmt"
	"slices"

	library "github.com/bluenviron/mediacommon/v2/pkg/codecs/ac3"

	"millrace/internal/media/frame"
)

// Samples is how many samples of each channel a syncframe has.
const Samples = library.SamplesPerFrame

// HeaderSize is how many bytes Parse needs.
const HeaderSize = 7

// ErrMalformed is wrapped by every error of this package: the bytes are not AC-3 as the standard has it.
var ErrMalformed = errors.New("malformed AC-3")

// CodecString returns the RFC 6381 name.
func CodecString() string { return "ac-3" }

// Header is what a syncframe says.
type Header struct {
	Size       int // bytes of the whole syncframe
	SampleRate int // Hz
	Channels   int // with the one for low frequencies
	// Specific is the body of AC3SpecificBox, ETSI TS 102 366 section F.4.
	Specific [3]byte
}

// Parse reads the beginning of a syncframe. Enhanced AC-3 is none.
func Parse(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, fmt.Errorf("%w: syncframe of %d bytes", ErrMalformed, len(b))
	}
	var sync library.SyncInfo
	if err := sync.Unmarshal(b); err != nil {
		return Header{}, fmt.Errorf("%w: read syncinfo: %w", ErrMalformed, err)
	}
	var bsi library.BSI
	if err := bsi.Unmarshal(b[5:]); err != nil {
		return Header{}, fmt.Errorf("%w: read bsi: %w", ErrMalformed, err)
	}
	lfe := uint32(0)
	if bsi.LfeOn {
		lfe = 1
	}
	v := uint32(sync.Fscod)<<22 | uint32(bsi.Bsid)<<17 | uint32(bsi.Bsmod)<<14 | uint32(bsi.Acmod)<<11 | lfe<<10 |
		uint32(sync.Frmsizecod>>1)<<5
	return Header{
		Size: sync.FrameSize(), SampleRate: sync.SampleRate(), Channels: bsi.ChannelCount(),
		Specific: [3]byte{byte(v >> 16), byte(v >> 8), byte(v)},
	}, nil
}

// TrackConfig makes the track configuration of a stream from one of its syncframes.
func TrackConfig(syncframe []byte) (frame.Config, error) {
	h, err := Parse(syncframe)
	if err != nil {
		return frame.Config{}, err
	}
	return frame.Config{
		Kind:       frame.Audio,
		Codec:      frame.AC3,
		Header:     h.Specific[:],
		SampleRate: h.SampleRate,
		Channels:   h.Channels,
	}, nil
}

// Specific makes the AC3SpecificBox of a stream with so many channels in the usual order, at a bit rate that is usual
// for them; nil for what there is none of.
func Specific(sampleRate, channels int) []byte {
	const id = 8
	rate := slices.Index([]int{48000, 44100, 32000}, sampleRate)
	if rate < 0 || channels < 1 || channels > 6 {
		return nil
	}
	acmod, bits, lfe := []int{1, 2, 3, 6, 7, 7}[channels-1], []int{6, 10, 13, 14, 14, 15}[channels-1], channels/6
	v := rate<<22 | id<<17 | acmod<<11 | lfe<<10 | bits<<5
	return []byte{byte(v >> 16), byte(v >> 8), byte(v)}
}
