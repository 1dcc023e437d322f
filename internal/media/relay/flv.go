package relay

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/bluenviron/gortmplib/pkg/amf0"

	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/frame"
)

// Codec numbers of FLV annex E.4.2.1 and E.4.3.1, and of Enhanced RTMP version 2.
const (
	flvAVC, flvAAC, flvMP3 = 7, 10, 2
	flvExtended            = 0x80 // video
	flvExtendedAudio       = 9 << 4
	exSequenceStart        = 0
	exCodedFrames          = 1
)

// fourCC names the codecs of Enhanced RTMP that go out under it; H.264, AAC and MP3 go out in FLV's own form, which every server knows.
func fourCC(c frame.Codec) string {
	switch c {
	case frame.HEVC:
		return "hvc1"
	case frame.AV1:
		return "av01"
	case frame.VP9:
		return "vp09"
	case frame.Opus:
		return "Opus"
	case frame.FLAC:
		return "fLaC"
	case frame.AC3:
		return "ac-3"
	case frame.H264, frame.AAC, frame.MP3, frame.VP8:
	}
	return ""
}

func fourCCs() amf0.StrictArray {
	return amf0.StrictArray{"avc1", "hvc1", "av01", "vp09", "mp4a", "Opus", "fLaC", "ac-3", ".mp3"}
}

func enhanced(configs []frame.Config) bool {
	for _, c := range configs {
		if fourCC(c.Codec) != "" {
			return true
		}
	}
	return false
}

// flvCarries says why a track can not go over RTMP.
func flvCarries(c frame.Config) error {
	switch c.Codec {
	case frame.H264, frame.AAC, frame.MP3:
		return nil
	case frame.HEVC, frame.AV1, frame.VP9, frame.Opus, frame.FLAC, frame.AC3, frame.VP8:
	}
	if fourCC(c.Codec) != "" {
		return nil
	}
	return impossible("RTMP does not carry %s of codec %q", c.Kind, c.Codec)
}

// stamp is a time of the relay's clock in RTMP's milliseconds, modulo 2^32.
func stamp(t time.Duration) uint32 { return uint32((t + time.Millisecond/2) / time.Millisecond) }

// appendTagHead appends what stands before a frame's data.
func appendTagHead(b []byte, c frame.Config, f frame.Frame) []byte {
	name := fourCC(c.Codec)
	switch {
	case f.Kind == frame.Audio && name != "":
		return append(append(b, flvExtendedAudio|exCodedFrames), name...)
	case c.Codec == frame.MP3:
		return append(b, flvMP3<<4|0x0f)
	case f.Kind == frame.Audio:
		return append(b, flvAAC<<4|0x0f, 1)
	}
	kind := byte(2 << 4)
	if f.Key {
		kind = 1 << 4
	}
	offset := stamp(f.PTS) - stamp(f.DTS)
	composition := []byte{byte(offset >> 16), byte(offset >> 8), byte(offset)}
	switch {
	case name == "":
		return append(append(b, kind|flvAVC, 1), composition...)
	case c.Codec == frame.HEVC: // the others have no composition time
		return append(append(append(b, flvExtended|kind|exCodedFrames), name...), composition...)
	}
	return append(append(b, flvExtended|kind|exCodedFrames), name...)
}

// sequenceHeader is the message that carries a track's parameters; nil for a codec that has none.
func sequenceHeader(c frame.Config) ([]byte, error) {
	const video = flvExtended | 1<<4 | exSequenceStart
	var b []byte
	var err error
	if name := fourCC(c.Codec); c.Kind == frame.Video && name != "" {
		b = append([]byte{video}, name...)
	} else if name != "" {
		b = append([]byte{flvExtendedAudio | exSequenceStart}, name...)
	}
	switch c.Codec {
	case frame.H264:
		b, err = h264.AppendAVCC([]byte{1<<4 | flvAVC, 0, 0, 0, 0}, c.SPS, c.PPS, c.Sets...)
	case frame.HEVC:
		b, err = hevc.AppendHVCC(b, c.VPS, c.SPS, c.PPS, c.Sets...)
	case frame.AV1:
		b, err = av1.AppendConfig(b, c.Header)
	case frame.VP9:
		b = append(append(b, 1, 0, 0, 0), c.Header...) // the box's version and flags are part of what servers read
	case frame.AAC:
		b = append([]byte{flvAAC<<4 | 0x0f, 0}, c.ASC...)
	case frame.Opus:
		b, err = appendOpusHead(b, c.Header)
	case frame.FLAC:
		b = append(append(b, "fLaC\x80\x00\x00\x22"...), c.Header...) // signature and the header of a last metadata block, STREAMINFO
	case frame.MP3, frame.AC3, frame.VP8:
		return nil, nil
	}
	if err != nil {
		return nil, impossible("the %s parameters can not be written: %s", c.Kind, err)
	}
	return b, nil
}

// appendOpusHead turns an OpusSpecificBox (its ISO BMFF binding, section 4.3.2) into an identification header, RFC 7845 section 5.1.
func appendOpusHead(b, box []byte) ([]byte, error) {
	if len(box) < 11 {
		return nil, fmt.Errorf("OpusSpecificBox of %d bytes", len(box))
	}
	be, le := binary.BigEndian, binary.LittleEndian
	b = append(b, "OpusHead\x01"...)
	b = append(b, box[1])
	b = le.AppendUint16(b, be.Uint16(box[2:]))
	b = le.AppendUint32(b, be.Uint32(box[4:]))
	b = le.AppendUint16(b, be.Uint16(box[8:]))
	return append(b, box[10:]...), nil
}

// metadata is the onMetaData message, FLV annex E.5, of the tracks that are known.
func metadata(configs [2]*frame.Config) ([]byte, error) {
	o := amf0.Object{{Key: "encoder", Value: "millrace"}}
	add := func(key string, v float64) { o = append(o, amf0.ObjectEntry{Key: key, Value: v}) }
	if v := configs[frame.Video]; v != nil {
		add("width", float64(v.Width))
		add("height", float64(v.Height))
		if v.FrameRate > 0 {
			add("framerate", v.FrameRate)
		}
		add("videocodecid", codecID(v.Codec, flvAVC))
	}
	if a := configs[frame.Audio]; a != nil {
		add("audiosamplerate", float64(a.SampleRate))
		add("audiochannels", float64(a.Channels))
		add("audiosamplesize", 16)
		o = append(o, amf0.ObjectEntry{Key: "stereo", Value: a.Channels > 1})
		id := byte(flvAAC)
		if a.Codec == frame.MP3 {
			id = flvMP3
		}
		add("audiocodecid", codecID(a.Codec, id))
	}
	body, err := amf0.Data{"@setDataFrame", "onMetaData", amf0.ECMAArray(o)}.Marshal()
	if err != nil {
		return nil, fmt.Errorf("write metadata: %w", err)
	}
	return body, nil
}

// codecID is FLV's number of a codec, or its four characters as a number.
func codecID(c frame.Codec, id byte) float64 {
	if name := fourCC(c); name != "" {
		return float64(binary.BigEndian.Uint32([]byte(name)))
	}
	return float64(id)
}
