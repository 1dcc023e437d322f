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

// The syntactic elements of AAC, ISO 14496-3 table 4.85, and how a channel configuration of table 1.19 is made of them.
const (
	singleChannel = iota
	channelPair
	_
	lowFrequencies
	endOfBlock = 7
)

var elements = map[int][]uint{ //nolint:gochecknoglobals // a table
	1: {singleChannel}, 2: {channelPair}, 3: {singleChannel, channelPair}, 4: {singleChannel, channelPair, singleChannel},
	5: {singleChannel, channelPair, channelPair}, 6: {singleChannel, channelPair, channelPair, lowFrequencies},
}

// silentAAC is a raw_data_block, section 4.4.2.1, whose channels have no spectrum: it says the same at every sample rate. Without
// extension payload a decoder for SBR makes silence of it as well. nil for more channels than six.
func silentAAC(channels int) []byte {
	var out []byte
	free := 0
	put := func(v uint, n int) {
		for ; n > 0; n-- {
			if free == 0 {
				out, free = append(out, 0), 8
			}
			free--
			out[len(out)-1] |= byte(v>>(n-1)&1) << free
		}
	}
	used := [4]uint{}
	for _, e := range elements[channels] {
		put(e, 3)
		put(used[e], 4) // element_instance_tag
		used[e]++
		streams := 1
		if e == channelPair {
			put(0, 1) // no common window
			streams = 2
		}
		for range streams {
			put(0, 8)  // global_gain
			put(0, 11) // ics_info: a long window, max_sfb 0, no prediction
			put(0, 3)  // no pulses, noise shaping or gain control
		}
	}
	if out != nil {
		put(endOfBlock, 3)
	}
	return out
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
		packet := silentAAC(p.Channels)
		return Silence{Packet: packet, samples: int64(p.SamplesPerFrame), rate: int64(p.SampleRate)}, packet != nil
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
