// Package aac reads the AudioSpecificConfig of an AAC stream, ISO 14496-3 section 1.6.
// Bytes in, values out: it must never know files, sockets, time of day or a logger, and it starts no goroutines.
package aac

import (
	"errors"
	"fmt"
	"slices"

	"millrace/internal/media/codec/bits"
	"millrace/internal/media/frame"
)

// Audio object types, ISO 14496-3 table 1.17.
const (
	ObjectLC  = 2  // AAC-LC
	ObjectSBR = 5  // HE-AAC
	ObjectPS  = 29 // HE-AAC v2
)

// The errors of this package wrap one of these.
var (
	ErrMalformed   = errors.New("malformed AudioSpecificConfig")
	ErrUnsupported = errors.New("unsupported AAC")
)

// Config is an AudioSpecificConfig in plain numbers.
type Config struct {
	// ObjectType is ObjectLC, ObjectSBR or ObjectPS: what the stream is as a whole.
	ObjectType int
	// SampleRate is that of the AAC core in Hz: one frame lasts SamplesPerFrame/SampleRate seconds whatever SBR adds.
	SampleRate int
	// OutputSampleRate is that of the decoded sound, twice SampleRate with SBR.
	OutputSampleRate int
	// Channels of the core, 1 to 8 (with parametric stereo 1 although two come out).
	Channels int
	// SamplesPerFrame at SampleRate: 1024 or 960.
	SamplesPerFrame int
}

// CodecString returns the RFC 6381 name, as "mp4a.40.2".
func (c Config) CodecString() string { return fmt.Sprintf("mp4a.40.%d", c.ObjectType) }

// CodecString returns the RFC 6381 name of a stream with this AudioSpecificConfig; "" when it can't be read.
func CodecString(asc []byte) string {
	c, err := Parse(asc)
	if err != nil {
		return ""
	}
	return c.CodecString()
}

// TrackConfig makes the track configuration of a stream with this AudioSpecificConfig.
func TrackConfig(asc []byte) (frame.Config, error) {
	c, err := Parse(asc)
	if err != nil {
		return frame.Config{}, err
	}
	return frame.Config{
		Kind:       frame.Audio,
		Codec:      frame.AAC,
		ASC:        asc,
		SampleRate: c.SampleRate,
		Channels:   c.Channels,
	}, nil
}

// maxASC bounds what is looked at; with a program config element it has some tens of bytes.
const maxASC = 512

var sampleRates = [...]int{96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350} //nolint:gochecknoglobals // a table

// Parse reads an AudioSpecificConfig. SBR and PS are found when signalled by an object type of their own or, compatible
// with old decoders, by the sync extension behind an AAC-LC configuration. Object types other than AAC-LC below them
// are ErrUnsupported.
func Parse(asc []byte) (Config, error) {
	if len(asc) < 2 || len(asc) > maxASC {
		return Config{}, fmt.Errorf("%w: %d bytes", ErrMalformed, len(asc))
	}
	r := bits.NewReader(asc)
	object := objectType(r)
	c := Config{ObjectType: object, SampleRate: sampleRate(r)}
	layout := r.Bits(4)
	c.OutputSampleRate = c.SampleRate
	if object == ObjectSBR || object == ObjectPS {
		c.OutputSampleRate = sampleRate(r)
		object = objectType(r)
	}
	if r.Short() {
		return Config{}, fmt.Errorf("%w: it ends too early", ErrMalformed)
	}
	if object != ObjectLC {
		return Config{}, fmt.Errorf("%w: object type %d is not AAC-LC", ErrUnsupported, object)
	}
	c.SamplesPerFrame = 1024
	if r.Bits(1) == 1 {
		c.SamplesPerFrame = 960
	}
	if r.Bits(1) == 1 {
		r.Bits(14) // core coder delay
	}
	r.Bits(1) // extensionFlag, only with object types this package refuses
	var err error
	if c.Channels, err = channels(layout, r); err != nil {
		return Config{}, err
	}
	if r.Short() {
		return Config{}, fmt.Errorf("%w: it ends too early", ErrMalformed)
	}
	if c.ObjectType == ObjectLC {
		c.syncExtension(r)
	}
	if c.SampleRate < 7000 || c.SampleRate > 96000 || c.OutputSampleRate < c.SampleRate || c.OutputSampleRate > 192000 {
		return Config{}, fmt.Errorf("%w: sample rates %d and %d", ErrMalformed, c.SampleRate, c.OutputSampleRate)
	}
	return c, nil
}

// channels turns a channelConfiguration into a number; 0 means that a program config element follows.
func channels(layout int, r *bits.Reader) (int, error) {
	switch {
	case layout == 0:
		n, _ := programConfig(r)
		if n < 1 || n > 64 {
			return 0, fmt.Errorf("%w: program config element with %d channels", ErrMalformed, n)
		}
		return n, nil
	case layout <= 6:
		return layout, nil
	case layout == 7, layout == 12, layout == 14:
		return 8, nil
	case layout == 11:
		return 7, nil
	}
	return 0, fmt.Errorf("%w: channel configuration %d", ErrMalformed, layout)
}

// Element is a syntactic element that each of a stream's raw_data_blocks has, ISO 14496-3 table 4.85.
type Element struct{ ID, Tag int }

// The elements that have channels.
const (
	SingleChannel = iota
	ChannelPair
	_
	LowFrequencies
)

// layouts are the elements of the channel configurations of table 1.19; elements of a kind are numbered in order.
var layouts = map[int][]int{ //nolint:gochecknoglobals // a table
	1: {SingleChannel}, 2: {ChannelPair}, 3: {SingleChannel, ChannelPair},
	4: {SingleChannel, ChannelPair, SingleChannel},
	5: {SingleChannel, ChannelPair, ChannelPair}, 6: {SingleChannel, ChannelPair, ChannelPair, LowFrequencies},
	7:  {SingleChannel, ChannelPair, ChannelPair, ChannelPair, LowFrequencies},
	11: {SingleChannel, ChannelPair, ChannelPair, SingleChannel, LowFrequencies},
	12: {SingleChannel, ChannelPair, ChannelPair, ChannelPair, LowFrequencies},
	14: {SingleChannel, ChannelPair, ChannelPair, LowFrequencies, ChannelPair},
}

// Elements lists what each raw_data_block of a stream with this AudioSpecificConfig consists of.
func Elements(asc []byte) ([]Element, error) {
	if _, err := Parse(asc); err != nil {
		return nil, err
	}
	r := bits.NewReader(asc)
	object := objectType(r)
	sampleRate(r)
	layout := r.Bits(4)
	if object == ObjectSBR || object == ObjectPS {
		sampleRate(r)
		objectType(r)
	}
	r.Bits(1)
	if r.Bits(1) == 1 {
		r.Bits(14)
	}
	r.Bits(1)
	if layout == 0 {
		_, out := programConfig(r)
		return out, nil
	}
	var out []Element
	var used [LowFrequencies + 1]int
	for _, id := range layouts[layout] {
		out = append(out, Element{id, used[id]})
		used[id]++
	}
	return out, nil
}

// syncExtension reads the backward compatible signalling of SBR and PS, section 1.6.6.1. It is optional: what is not
// there is not an error.
func (c *Config) syncExtension(r *bits.Reader) {
	if r.Left() < 16 || r.Bits(11) != 0x2b7 || objectType(r) != ObjectSBR || r.Bits(1) != 1 {
		return
	}
	rate := sampleRate(r)
	if r.Short() || rate < c.SampleRate {
		return
	}
	c.ObjectType, c.OutputSampleRate = ObjectSBR, rate
	if r.Left() >= 12 && r.Bits(11) == 0x548 && r.Bits(1) == 1 {
		c.ObjectType = ObjectPS
	}
}

func objectType(r *bits.Reader) int {
	t := r.Bits(5)
	if t == 31 {
		t = 32 + r.Bits(6)
	}
	return t
}

// sampleRate reads an index or an explicit rate; a reserved index gives 0.
func sampleRate(r *bits.Reader) int {
	i := r.Bits(4)
	if i == 15 {
		return r.Bits(24)
	}
	if i < len(sampleRates) {
		return sampleRates[i]
	}
	return 0
}

// programConfig reads a program_config_element, section 4.4.1.1, and returns its number of channels and its elements.
func programConfig(r *bits.Reader) (n int, elements []Element) {
	r.Bits(4 + 2 + 4) // instance tag, object type, sampling frequency index
	front, side, back, lfe := r.Bits(4), r.Bits(4), r.Bits(4), r.Bits(2)
	assoc, coupling := r.Bits(3), r.Bits(4)
	for _, width := range [...]int{4, 4, 3} { // mono, stereo and matrix mixdown
		if r.Bits(1) == 1 {
			r.Bits(width)
		}
	}
	n = lfe
	for range front + side + back {
		pair := r.Bits(1)
		n += 1 + pair
		elements = append(elements, Element{SingleChannel + pair, r.Bits(4)})
	}
	for range lfe {
		elements = append(elements, Element{LowFrequencies, r.Bits(4)})
	}
	r.Skip(4 * assoc)
	r.Skip(5 * coupling)
	r.Align()
	r.Skip(8 * r.Bits(8)) // comment
	return n, elements
}

// LC makes the AudioSpecificConfig of AAC-LC with frames of 1024 samples; nil for a sample rate or a number of channels
// that has no code.
func LC(sampleRate, channels int) []byte {
	code := slices.Index(sampleRates[:], sampleRate)
	if code < 0 || channels < 1 || channels > 6 { // layout 7 has eight channels
		return nil
	}
	return []byte{byte(ObjectLC<<3 | code>>1), byte(code<<7 | channels<<3)}
}

// Window is how the sound of a raw_data_block fades out into the next one: what the decoder of the next one has to
// know.
type Window struct {
	Long  bool // over a whole block: ONLY_LONG_SEQUENCE or LONG_STOP_SEQUENCE
	Shape int  // 0 sine, 1 Kaiser-Bessel derived
}

// WindowOf reads the ics_info of a raw_data_block's first channel, ISO 14496-3 table 4.50; false when the block does
// not begin with one.
func WindowOf(block []byte) (Window, bool) {
	r := bits.NewReader(block)
	switch id := r.Bits(3); id {
	case SingleChannel:
		r.Bits(4 + 8) // tag, global gain
	case ChannelPair:
		r.Bits(4)
		if r.Bits(1) == 0 { // no common window: the first channel's stream
			r.Bits(8)
		}
	default:
		return Window{}, false
	}
	r.Bits(1) // reserved
	sequence := r.Bits(2)
	w := Window{Long: sequence == 0 || sequence == 3, Shape: r.Bits(1)}
	return w, !r.Short()
}
