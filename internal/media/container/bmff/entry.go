package bmff

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/frame"
)

// ErrUnknownCodec means that a sample entry is well-formed and of a codec that is not packaged here.
var ErrUnknownCodec = errors.New("codec is neither H.264 nor AAC")

// Codec is what a sample entry says about its stream.
type Codec struct {
	Config frame.Config
	// LengthSize is the number of bytes before each NAL unit, video only.
	LengthSize int
	// PARWidth and PARHeight are the pasp box's, 0 when there is none.
	PARWidth, PARHeight uint32
	// QuickTime tells that the entry has QuickTime's own layout (sound version 1 or 2), which players of fragmented MP4
	// do not read.
	QuickTime bool
}

// ParseEntry reads an H.264 or AAC sample entry. Other codecs are ErrUnknownCodec.
func ParseEntry(e SampleEntry) (Codec, error) {
	switch {
	case e.Type.Is("avc1"), e.Type.Is("avc3"):
		return visual(e)
	case e.Type.Is("mp4a"):
		return sound(e)
	}
	return Codec{}, fmt.Errorf("%w: %s", ErrUnknownCodec, e.Type)
}

// VisualHeader is how long a visual sample entry is before its boxes, ISO 14496-12 section 12.1.3.
const VisualHeader = 8 + 78

func visual(e SampleEntry) (Codec, error) {
	if len(e.Raw) < VisualHeader {
		return Codec{}, Malformed("%s sample entry of %d bytes", e.Type, len(e.Raw))
	}
	children := e.Raw[VisualHeader:]
	avcC := Find(children, "avcC")
	if avcC == nil {
		return Codec{}, Malformed("%s sample entry has no avcC", e.Type)
	}
	sps, pps, lengthSize, err := h264.ParseAVCC(avcC)
	if err != nil {
		return Codec{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	c := Codec{LengthSize: lengthSize, Config: frame.Config{Kind: frame.Video, Codec: frame.H264}}
	if len(sps) > 0 && len(pps) > 0 {
		if c.Config, err = h264.TrackConfig(sps[0], pps[0], slices.Concat(sps[1:], pps[1:])...); err != nil {
			return Codec{}, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
	} else { // avc3 may have its sets in the samples only
		c.Config.Width = int(binary.BigEndian.Uint16(e.Raw[32:]))
		c.Config.Height = int(binary.BigEndian.Uint16(e.Raw[34:]))
	}
	if pasp := Find(children, "pasp"); len(pasp) >= 8 {
		c.PARWidth, c.PARHeight = binary.BigEndian.Uint32(pasp), binary.BigEndian.Uint32(pasp[4:])
	}
	return c, nil
}

const soundHeader = 8 + 28

func sound(e SampleEntry) (Codec, error) {
	if len(e.Raw) < soundHeader {
		return Codec{}, Malformed("mp4a sample entry of %d bytes", len(e.Raw))
	}
	var c Codec
	esds := Find(e.Raw[soundHeader:], "esds")
	// QuickTime's versions 1 and 2 put 16 or 36 bytes between, and the esds often into a wave box.
	for _, extra := range [...]int{16, 36} {
		if esds != nil || len(e.Raw) < soundHeader+extra {
			break
		}
		children := e.Raw[soundHeader+extra:]
		c.QuickTime = true
		if esds = Find(children, "esds"); esds == nil {
			esds = Find(children, "wave", "esds")
		}
	}
	if esds == nil {
		return Codec{}, Malformed("mp4a sample entry has no esds")
	}
	asc, err := decoderConfig(esds)
	if err != nil {
		return Codec{}, err
	}
	c.Config, err = aac.TrackConfig(asc)
	switch {
	case errors.Is(err, aac.ErrUnsupported):
		return Codec{}, fmt.Errorf("%w: %w", ErrUnknownCodec, err)
	case err != nil:
		return Codec{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return c, nil
}

// Descriptor tags and object types, ISO 14496-1 sections 7.2.2.1 and 7.2.6.6.
const (
	tagES, tagDecoderConfig, tagDecoderSpecific = 3, 4, 5
	objectMPEG4Audio, objectMPEG2Main           = 0x40, 0x66
	objectMPEG2SSR                              = 0x68
)

// decoderConfig finds the AudioSpecificConfig in an esds body.
func decoderConfig(esds []byte) ([]byte, error) {
	r := NewReader(esds)
	r.Full()
	es := NewReader(descriptor(r, tagES))
	es.Skip(2)
	flags := es.U8()
	if flags&0x80 != 0 {
		es.Skip(2)
	}
	if flags&0x40 != 0 {
		es.Skip(int(es.U8()))
	}
	if flags&0x20 != 0 {
		es.Skip(2)
	}
	dc := NewReader(descriptor(es, tagDecoderConfig))
	object := dc.U8()
	dc.Skip(12)
	if r.Err() != nil || es.Err() != nil || dc.Err() != nil {
		return nil, Malformed("esds has no decoder configuration")
	}
	if object != objectMPEG4Audio && (object < objectMPEG2Main || object > objectMPEG2SSR) {
		return nil, fmt.Errorf("%w: mp4a with object type 0x%02x", ErrUnknownCodec, object)
	}
	asc := descriptor(dc, tagDecoderSpecific)
	if asc == nil {
		return nil, Malformed("esds has no AudioSpecificConfig")
	}
	return asc, nil
}

// descriptor takes the next descriptor with this tag, nil when there is none.
func descriptor(r *Reader, tag uint8) []byte {
	for len(r.Left()) > 0 {
		t, n := r.U8(), 0
		for range 4 {
			c := r.U8()
			n = n<<7 | int(c&0x7f)
			if c&0x80 == 0 {
				break
			}
		}
		n = min(n, len(r.Left())) // some writers give the outer ones too long a size
		if b := r.Bytes(n); t == tag {
			return b
		}
	}
	return nil
}
