package slate

import (
	"time"

	"millrace/internal/media/codec"
	"millrace/internal/media/codec/aac"
	"millrace/internal/media/frame"
)

// Silence is a packet that decodes to silence, over and over, with the parameters of a track.
type Silence struct {
	Packet  []byte
	samples int64 // in a packet
	rate    int64 // Hz, that samples are counted in
	// short gives a packet of at most so many samples, fewer than a whole one has, and how many; nil where packets have
	// one length.
	short func(samples int64) (packet []byte, length int64)
}

// SilenceOf returns the silence of a track; false where its parameters can't be read.
func SilenceOf(c frame.Config) (Silence, bool) {
	clock := codec.ClockOf(c)
	s := Silence{samples: clock.Length, rate: clock.Rate}
	switch c.Codec {
	case frame.AAC:
		s.Packet = aac.Silence(c.ASC)
	case frame.Opus:
		s.Packet = silentOpus(c, len(opusLengths)-1)
		s.short = func(samples int64) ([]byte, int64) {
			for i := len(opusLengths) - 1; i >= 0; i-- {
				if opusLengths[i] <= samples {
					return silentOpus(c, i), opusLengths[i]
				}
			}
			return nil, 0
		}
	case frame.FLAC:
		s.Packet = silentFLAC(c, s.samples)
		s.short = func(samples int64) ([]byte, int64) { return silentFLAC(c, samples), samples }
	case frame.AC3:
		s.Packet = silentAC3(c.Header)
	case frame.MP3:
		s.Packet = silentMP3(c)
	case frame.H264, frame.HEVC, frame.AV1, frame.VP9, frame.VP8:
	}
	return s, s.Packet != nil
}

// at is when packet n begins.
func (s Silence) at(n int64) time.Duration { return s.time(n * s.samples) }

func (s Silence) time(samples int64) time.Duration {
	if s.rate == 0 {
		return 0
	}
	return time.Duration(samples/s.rate)*time.Second +
		time.Duration((samples%s.rate*int64(time.Second)+s.rate/2)/s.rate)
}

// fill returns the packet that fills the rest of a hole best, which is shorter than a whole one: a shorter one where
// the codec has them, else a whole one if more than half of it is needed; nil where a hole is better.
func (s Silence) fill(rest time.Duration) (packet []byte, long time.Duration) {
	if rest <= 0 || rest >= s.at(1) {
		return nil, 0
	}
	if s.short != nil {
		packet, n := s.short((int64(rest)*s.rate + int64(time.Second)/2) / int64(time.Second))
		return packet, s.time(n)
	}
	if 2*rest > s.at(1) {
		return s.Packet, s.at(1)
	}
	return nil, 0
}
