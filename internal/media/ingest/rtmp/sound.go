package rtmp

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/ac3"
	"millrace/internal/media/codec/flac"
	"millrace/internal/media/codec/mp3"
	"millrace/internal/media/codec/opus"
	"millrace/internal/media/container/flv"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
)

// audioState is what is known of the audio's parameters.
type audioState struct {
	codec  frame.Codec
	record []byte // the sequence header as last sent; nil before, and for codecs whose frames say all
	config frame.Config
}

// configure reads a sequence header. It gives a configuration when there is a new one to be told.
func (a *audioState) configure(codec frame.Codec, record []byte) (*frame.Config, error) {
	if codec == frame.AC3 || codec == frame.MP3 { // their frames say it
		return nil, nil //nolint:nilnil // nothing new
	}
	if len(record) == 0 || a.record != nil && a.codec == codec && bytes.Equal(record, a.record) {
		return nil, nil //nolint:nilnil // nothing new
	}
	var c frame.Config
	var err error
	var header []byte
	switch codec { //nolint:exhaustive // of sound with a sequence header
	case frame.AAC:
		c, err = aac.TrackConfig(record)
	case frame.Opus:
		if header, err = opus.FromHead(record); err == nil {
			c, err = opus.TrackConfig(header)
		}
	case frame.FLAC:
		if header, err = flac.StreamInfo(record); err == nil {
			c, err = flac.TrackConfig(header)
		}
	default:
		err = fmt.Errorf("codec %s", codec)
	}
	if err != nil {
		return nil, ingest.Unsupported("audio configuration can not be used: " + err.Error())
	}
	*a = audioState{codec: codec, record: record, config: c}
	return &c, nil
}

var errNoSequenceHeader = errors.New("no sequence header before it")

// next takes the first frame off a message. It gives a configuration when the frame brings a new one. length is 0 where
// the frame's is not needed because nothing can follow it.
func (a *audioState) next(
	codec frame.Codec, data []byte,
) (sample, rest []byte, length time.Duration, c *frame.Config, err error) {
	switch codec { //nolint:exhaustive // the others are told by a sequence header
	case frame.AC3:
		h, err := ac3.Parse(data)
		if err == nil && h.Size > len(data) {
			err = fmt.Errorf("%d bytes of %d", len(data), h.Size)
		}
		if err != nil {
			return nil, nil, 0, nil, fmt.Errorf("%w: AC-3 frame: %w", flv.ErrMalformed, err)
		}
		if a.codec != codec || !bytes.Equal(a.config.Header, h.Specific[:]) {
			c = &frame.Config{
				Kind:       frame.Audio,
				Codec:      frame.AC3,
				Header:     bytes.Clone(h.Specific[:]),
				SampleRate: h.SampleRate,
				Channels:   h.Channels,
			}
			*a = audioState{codec: codec, config: *c}
		}
		return data[:h.Size:h.Size], data[h.Size:], samples(ac3.Samples, h.SampleRate), c, nil
	case frame.MP3:
		h, err := mp3.Parse(data)
		if err == nil && h.Size > len(data) {
			err = fmt.Errorf("%d bytes of %d", len(data), h.Size)
		}
		if err != nil {
			return nil, nil, 0, nil, fmt.Errorf("%w: MP3 frame: %w", flv.ErrMalformed, err)
		}
		if a.codec != codec || a.config.SampleRate != h.SampleRate || a.config.Channels != h.Channels {
			c = &frame.Config{Kind: frame.Audio, Codec: frame.MP3, SampleRate: h.SampleRate, Channels: h.Channels}
			*a = audioState{codec: codec, config: *c}
		}
		return data[:h.Size:h.Size], data[h.Size:], samples(h.Samples, h.SampleRate), c, nil
	}
	switch {
	case a.record == nil, a.codec != codec:
		return nil, nil, 0, nil, errNoSequenceHeader
	case codec == frame.Opus && opus.Samples(data) == 0, codec == frame.FLAC && flac.Samples(data) == 0:
		return nil, nil, 0, nil, fmt.Errorf("%w: %s frame of %d bytes", flv.ErrMalformed, codec, len(data))
	}
	return data, nil, 0, nil, nil
}

// samples is how long n samples last.
func samples(n int64, rate int) time.Duration {
	return time.Duration(n) * time.Second / time.Duration(rate)
}
