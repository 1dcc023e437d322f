package cmaf

import (
	"encoding/binary"
	"fmt"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/frame"
)

// SampleEntry makes the sample entry box of a track: avc1, hvc1, av01, vp09, mp4a, Opus, fLaC or ac-3. VP8 has none.
func SampleEntry(c frame.Config) ([]byte, error) {
	switch c.Codec {
	case frame.H264:
		return avc1(c)
	case frame.HEVC:
		return hvc1(c)
	case frame.AV1:
		return av01(c)
	case frame.VP9:
		return visual("vp09", c, bmff.Full("vpcC", 1, 0, c.Header)), nil
	case frame.AAC:
		return mp4a(c)
	case frame.MP3:
		return sound("mp4a", c.SampleRate, c.Channels, esds(objectMPEG1Audio)), nil
	case frame.Opus:
		return sound("Opus", c.SampleRate, c.Channels, bmff.Make("dOps", c.Header)), nil
	case frame.FLAC: // Header is STREAMINFO, and it is the last metadata block
		return sound("fLaC", c.SampleRate, c.Channels,
			bmff.Full("dfLa", 0, 0, []byte{0x80, 0, 0, byte(len(c.Header))}, c.Header)), nil
	case frame.AC3: // ETSI TS 102 366 section F.2 wants 2 channels whatever there are
		return sound("ac-3", c.SampleRate, 2, bmff.Make("dac3", c.Header)), nil
	case frame.VP8:
		return nil, fmt.Errorf("%w: VP8 has no place in it, choose H.264 in the encoder", ErrUnsupported)
	}
	return nil, fmt.Errorf("%w: %s %q", ErrUnsupported, c.Kind, c.Codec)
}

func avc1(c frame.Config) ([]byte, error) {
	info, err := h264.Info(c.SPS)
	if err != nil {
		return nil, err
	}
	avcC, err := h264.AppendAVCC(nil, c.SPS, c.PPS, c.Sets...)
	if err != nil {
		return nil, err
	}
	c.Width, c.Height = info.Width, info.Height
	return visual("avc1", c, bmff.Make("avcC", avcC), colr(colour(info.Colour)),
		pasp(info.PARWidth, info.PARHeight)), nil
}

func hvc1(c frame.Config) ([]byte, error) {
	info, err := hevc.Info(c.SPS)
	if err != nil {
		return nil, err
	}
	hvcC, err := hevc.AppendHVCC(nil, c.VPS, c.SPS, c.PPS, c.Sets...)
	if err != nil {
		return nil, err
	}
	return visual("hvc1", c, bmff.Make("hvcC", hvcC), colr(colour(info.Colour)),
		pasp(info.PARWidth, info.PARHeight)), nil
}

func av01(c frame.Config) ([]byte, error) {
	info, err := av1.Info(c.Header)
	if err != nil {
		return nil, err
	}
	av1C, err := av1.AppendConfig(nil, c.Header)
	if err != nil {
		return nil, err
	}
	return visual("av01", c, bmff.Make("av1C", av1C), colr(colour(info.Colour))), nil
}

// visual is a VisualSampleEntry, ISO 14496-12 section 12.1.3.
func visual(typ string, c frame.Config, children ...[]byte) []byte {
	head := make([]byte, 78)
	be := binary.BigEndian
	be.PutUint16(head[6:], 1) // data reference
	be.PutUint16(head[24:], uint16(c.Width))
	be.PutUint16(head[26:], uint16(c.Height))
	be.PutUint32(head[28:], 72<<16)
	be.PutUint32(head[32:], 72<<16)
	be.PutUint16(head[40:], 1)      // frame count
	be.PutUint16(head[74:], 24)     // depth
	be.PutUint16(head[76:], 0xffff) // pre-defined
	return bmff.Make(typ, append([][]byte{head}, children...)...)
}

// colour is what every codec's header says in the same words.
type colour struct {
	Present                     bool
	Primaries, Transfer, Matrix uint8
	FullRange                   bool
}

func colr(c colour) []byte {
	if !c.Present {
		return nil
	}
	full := byte(0)
	if c.FullRange {
		full = 0x80
	}
	return bmff.Make("colr", []byte("nclx"), bmff.U16(uint16(c.Primaries), uint16(c.Transfer),
		uint16(c.Matrix)), []byte{
		full,
	})
}

func pasp(w, h int) []byte {
	if w == h {
		return nil
	}
	return bmff.Make("pasp", bmff.U32(uint32(w), uint32(h)))
}

// sound is an AudioSampleEntry, ISO 14496-12 section 12.2.3.
func sound(typ string, rate, channels int, config []byte) []byte {
	head := make([]byte, 28)
	be := binary.BigEndian
	be.PutUint16(head[6:], 1)
	be.PutUint16(head[16:], uint16(channels))
	be.PutUint16(head[18:], 16)
	if rate <= 0xffff {
		be.PutUint32(head[24:], uint32(rate)<<16)
	}
	return bmff.Make(typ, head, config)
}

func mp4a(c frame.Config) ([]byte, error) {
	a, err := aac.Parse(c.ASC)
	if err != nil {
		return nil, err
	}
	return sound("mp4a", a.SampleRate, a.Channels, esds(objectMPEG4Audio, descriptor(5, c.ASC))), nil
}

// Object types, ISO 14496-1 section 7.2.6.6.
const objectMPEG4Audio, objectMPEG1Audio = 0x40, 0x6b

// esds names the stream's object type: an audio stream, no buffer size, no rates.
func esds(object byte, specific ...[]byte) []byte {
	config := descriptor(4, append([][]byte{{object, 0x15, 0, 0, 0}, bmff.U32(0, 0)}, specific...)...)
	es := descriptor(3, bmff.U16(TrackID), []byte{0}, config, descriptor(6, []byte{2}))
	return bmff.Full("esds", 0, 0, es)
}

// descriptor builds an ISO 14496-1 descriptor with a size of four bytes.
func descriptor(tag byte, parts ...[]byte) []byte {
	b := []byte{tag, 0, 0, 0, 0}
	for _, p := range parts {
		b = append(b, p...)
	}
	n := len(b) - 5
	b[1], b[2], b[3], b[4] = 0x80|byte(n>>21&0x7f), 0x80|byte(n>>14&0x7f), 0x80|byte(n>>7&0x7f), byte(n&0x7f)
	return b
}
