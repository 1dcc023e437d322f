package flv

import (
	"encoding/binary"
	"fmt"
	"time"

	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/frame"
)

// FourCC names the codecs of Enhanced RTMP that go out under it; H.264, AAC and MP3 go out in FLV's own form, which
// every server knows: "".
func FourCC(c frame.Codec) string {
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

// Timestamp is a time in the milliseconds of messages, modulo 2^32.
func Timestamp(t time.Duration) uint32 { return uint32((t + time.Millisecond/2) / time.Millisecond) }

// AppendHead appends what stands before a frame's data in its message.
func AppendHead(b []byte, c frame.Config, f frame.Frame) []byte {
	name := FourCC(c.Codec)
	switch {
	case f.Kind == frame.Audio && name != "":
		return append(append(b, flvExtendedFlag<<4|exCodedFrames), name...)
	case c.Codec == frame.MP3:
		return append(b, flvMP3<<4|0x0f)
	case f.Kind == frame.Audio:
		return append(b, flvAAC<<4|0x0f, 1)
	}
	kind := byte(2 << 4)
	if f.Key {
		kind = 1 << 4
	}
	offset := Timestamp(f.PTS) - Timestamp(f.DTS)
	composition := []byte{byte(offset >> 16), byte(offset >> 8), byte(offset)}
	switch {
	case name == "":
		return append(append(b, kind|flvAVC, 1), composition...)
	case c.Codec == frame.HEVC: // the others have no composition time
		return append(append(append(b, flvExtendedBit|kind|exCodedFrames), name...), composition...)
	}
	return append(append(b, flvExtendedBit|kind|exCodedFrames), name...)
}

// SequenceHeader is the message that carries a track's parameters; nil for a codec that has none.
func SequenceHeader(c frame.Config) ([]byte, error) {
	const video = flvExtendedBit | 1<<4 | exSequenceStart
	var b []byte
	var err error
	if name := FourCC(c.Codec); c.Kind == frame.Video && name != "" {
		b = append([]byte{video}, name...)
	} else if name != "" {
		b = append([]byte{flvExtendedFlag<<4 | exSequenceStart}, name...)
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
		// signature and the header of a last metadata block, STREAMINFO
		b = append(append(b, "fLaC\x80\x00\x00\x22"...), c.Header...)
	case frame.MP3, frame.AC3, frame.VP8:
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("write %s parameters: %w", c.Kind, err)
	}
	return b, nil
}

// appendOpusHead turns an OpusSpecificBox (its ISO BMFF binding, section 4.3.2) into an identification header, RFC 7845
// section 5.1.
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

// CodecID is what onMetaData has as videocodecid or audiocodecid, annex E.5: FLV's number of a codec, or its four
// characters as a number.
func CodecID(c frame.Codec) float64 {
	if name := FourCC(c); name != "" {
		return float64(binary.BigEndian.Uint32([]byte(name)))
	}
	switch c { //nolint:exhaustive // the others have four characters
	case frame.H264:
		return flvAVC
	case frame.MP3:
		return flvMP3
	}
	return flvAAC
}

// Carries reports whether FLV or Enhanced RTMP has the codec.
func Carries(c frame.Codec) bool {
	return c == frame.H264 || c == frame.AAC || c == frame.MP3 || FourCC(c) != ""
}
