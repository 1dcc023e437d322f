package slate

import (
	"time"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/frame"
)

// Silence is a packet that decodes to silence, over and over, with the parameters of a track.
type Silence struct {
	Packet  []byte
	samples int64 // in a packet
	rate    int64 // Hz, that samples are counted in
}

// at is when packet n begins.
func (s Silence) at(n int64) time.Duration {
	if s.rate == 0 {
		return 0
	}
	pos := n * s.samples
	return time.Duration(pos/s.rate)*time.Second + time.Duration((pos%s.rate*int64(time.Second)+s.rate/2)/s.rate)
}

// Raw data blocks of AAC (ISO 14496-3 section 4.4.2.1) whose channels have no spectrum: they say the same at every sample rate. Without
// extension payload a decoder for SBR makes silence of them as well. By channels; the elements follow the channel configuration.
var silentAAC = map[int][]byte{ //nolint:gochecknoglobals // a table
	1: {0x00, 0xc8, 0x00, 0x80, 0x23, 0x80},
	2: {0x21, 0x00, 0x49, 0x90, 0x02, 0x19, 0x00, 0x23, 0x80},
	3: {0x00, 0xc8, 0x00, 0x80, 0x20, 0x84, 0x01, 0x26, 0x40, 0x08, 0x64, 0x00, 0x8e},
	4: {0x00, 0xc8, 0x00, 0x80, 0x20, 0x84, 0x01, 0x26, 0x40, 0x08, 0x64, 0x00, 0x80, 0x2c, 0x80, 0x08, 0x02, 0x38},
	5: {0x00, 0xc8, 0x00, 0x80, 0x20, 0x84, 0x01, 0x26, 0x40, 0x08, 0x64, 0x00, 0x82, 0x30, 0x04, 0x99, 0x00, 0x21, 0x90, 0x02, 0x38},
	6: {
		0x00, 0xc8, 0x00, 0x80, 0x20, 0x84, 0x01, 0x26, 0x40, 0x08, 0x64, 0x00, 0x82, 0x30, 0x04, 0x99, 0x00, 0x21, 0x90, 0x02, 0x00, 0xb2,
		0x00, 0x20, 0x08, 0xe0,
	},
}

// silentOpus is 20 ms of silence in CELT at full band, RFC 6716 section 3.1: configuration 31, one frame.
var silentOpus = []byte{0xf8, 0xff, 0xfe} //nolint:gochecknoglobals // a table

// SilenceOf gives the silence of a track; false where there is none.
func SilenceOf(c frame.Config) (Silence, bool) {
	switch c.Codec {
	case frame.AAC:
		p, err := aac.Parse(c.ASC)
		if err != nil {
			return Silence{}, false
		}
		packet, ok := silentAAC[p.Channels]
		return Silence{Packet: packet, samples: int64(p.SamplesPerFrame), rate: int64(p.SampleRate)}, ok
	case frame.Opus:
		packet := silentOpus
		if c.Channels == 2 {
			packet = []byte{silentOpus[0] | 4, silentOpus[1], silentOpus[2]}
		}
		return Silence{Packet: packet, samples: 960, rate: 48000}, c.Channels == 1 || c.Channels == 2
	case frame.FLAC, frame.AC3, frame.MP3, frame.H264, frame.HEVC, frame.AV1, frame.VP9, frame.VP8:
	}
	return Silence{}, false
}
