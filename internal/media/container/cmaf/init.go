package cmaf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/frame"
)

// ErrUnsupported means that a track is of a kind or codec that is not packaged.
var ErrUnsupported = errors.New("only H.264 and AAC can be packaged")

// Init makes the init segment, ftyp and moov, of one track with ID 1 and no edit list. timescale is in ticks per second, not 0.
func Init(c frame.Config, timescale uint32) ([]byte, error) {
	entry, err := SampleEntry(c)
	if err != nil {
		return nil, err
	}
	if timescale == 0 {
		return nil, errors.New("timescale 0")
	}
	o := InitOptions{Kind: c.Kind, SampleEntry: entry, Timescale: timescale}
	if c.Kind == frame.Video {
		info, err := h264.Info(c.SPS)
		if err != nil {
			return nil, err
		}
		// The presented size has square pixels; 16 bits before the point must do.
		w := (uint64(info.Width)*uint64(info.PARWidth) + uint64(info.PARHeight)/2) / uint64(info.PARHeight)
		if w == 0 || w > 0xffff {
			w = uint64(info.Width)
		}
		o.Width = uint32(w) << 16
		o.Height = uint32(info.Height) << 16
	}
	return InitFromEntry(o), nil
}

// InitOptions describes a track whose sample entry exists already.
type InitOptions struct {
	Kind        frame.Kind
	SampleEntry []byte // the whole box
	Timescale   uint32
	// Width and Height as presented, 16.16 fixed point; video only.
	Width, Height uint32
	// Matrix of the track header; all zeros mean identity.
	Matrix [9]uint32
	// Language is an ISO 639-2 code, "" undetermined.
	Language string
}

var identity = [9]uint32{0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000} //nolint:gochecknoglobals // a table

// InitFromEntry makes the init segment of a track with ID 1, no edit list.
func InitFromEntry(o InitOptions) []byte {
	if o.Matrix == [9]uint32{} {
		o.Matrix = identity
	}
	handler, name, volume := "vide", "VideoHandler\x00", uint32(0)
	header := bmff.Full("vmhd", 0, 1, bmff.U32(0, 0))
	if o.Kind == frame.Audio {
		handler, name, volume = "soun", "SoundHandler\x00", 0x01000000
		header = bmff.Full("smhd", 0, 0, bmff.U32(0))
	}
	tkhd := bmff.Full("tkhd", 0, 7, bmff.U32(0, 0, TrackID, 0, 0, 0, 0, 0, volume), bmff.U32(o.Matrix[:]...), bmff.U32(o.Width, o.Height))
	mdia := bmff.Make("mdia",
		bmff.Full("mdhd", 0, 0, bmff.U32(0, 0, o.Timescale, 0), bmff.U16(packLanguage(o.Language), 0)),
		bmff.Full("hdlr", 0, 0, bmff.U32(0), []byte(handler), bmff.U32(0, 0, 0), []byte(name)),
		bmff.Make("minf", header,
			bmff.Make("dinf", bmff.Full("dref", 0, 0, bmff.U32(1), bmff.Full("url ", 0, 1))),
			bmff.Make("stbl",
				bmff.Full("stsd", 0, 0, bmff.U32(1), o.SampleEntry),
				bmff.Full("stts", 0, 0, bmff.U32(0)),
				bmff.Full("stsc", 0, 0, bmff.U32(0)),
				bmff.Full("stsz", 0, 0, bmff.U32(0, 0)),
				bmff.Full("stco", 0, 0, bmff.U32(0)))))
	mvhd := bmff.Full("mvhd", 0, 0, bmff.U32(0, 0, 1000, 0, 0x10000, 0x01000000, 0, 0), bmff.U32(identity[:]...), bmff.U32(0, 0, 0, 0, 0, 0, TrackID+1))
	trex := bmff.Full("trex", 0, 0, bmff.U32(TrackID, 1, 0, 0, 0))
	b := bmff.Make("ftyp", []byte("iso6"), bmff.U32(0), []byte("iso6cmfcmp41"))
	return append(b, bmff.Make("moov", mvhd, bmff.Make("trak", tkhd, mdia), bmff.Make("mvex", trex))...)
}

func packLanguage(code string) uint16 {
	if len(code) != 3 {
		code = "und"
	}
	return uint16(code[0]-0x60)&31<<10 | uint16(code[1]-0x60)&31<<5 | uint16(code[2]-0x60)&31
}

// SampleEntry makes the avc1 or mp4a box of a track.
func SampleEntry(c frame.Config) ([]byte, error) {
	switch {
	case c.Kind == frame.Video && c.Codec == frame.H264:
		return avc1(c)
	case c.Kind == frame.Audio && c.Codec == frame.AAC:
		return mp4a(c)
	}
	return nil, fmt.Errorf("%w: not %s %q", ErrUnsupported, c.Kind, c.Codec)
}

func avc1(c frame.Config) ([]byte, error) {
	info, err := h264.Info(c.SPS)
	if err != nil {
		return nil, err
	}
	avcC, err := h264.AppendAVCC(nil, c.SPS, c.PPS)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 78) // ISO 14496-12 section 12.1.3
	be := binary.BigEndian
	be.PutUint16(head[6:], 1) // data reference
	be.PutUint16(head[24:], uint16(info.Width))
	be.PutUint16(head[26:], uint16(info.Height))
	be.PutUint32(head[28:], 72<<16)
	be.PutUint32(head[32:], 72<<16)
	be.PutUint16(head[40:], 1)      // frame count
	be.PutUint16(head[74:], 24)     // depth
	be.PutUint16(head[76:], 0xffff) // pre-defined
	children := bmff.Make("avcC", avcC)
	if info.Colour.Present {
		full := byte(0)
		if info.Colour.FullRange {
			full = 0x80
		}
		children = append(children, bmff.Make("colr", []byte("nclx"),
			bmff.U16(uint16(info.Colour.Primaries), uint16(info.Colour.Transfer), uint16(info.Colour.Matrix)), []byte{full})...)
	}
	if info.PARWidth != info.PARHeight {
		children = append(children, bmff.Make("pasp", bmff.U32(uint32(info.PARWidth), uint32(info.PARHeight)))...)
	}
	return bmff.Make("avc1", head, children), nil
}

func mp4a(c frame.Config) ([]byte, error) {
	a, err := aac.Parse(c.ASC)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 28) // ISO 14496-12 section 12.2.3
	be := binary.BigEndian
	be.PutUint16(head[6:], 1)
	be.PutUint16(head[16:], uint16(a.Channels))
	be.PutUint16(head[18:], 16)
	if a.SampleRate <= 0xffff {
		be.PutUint32(head[24:], uint32(a.SampleRate)<<16)
	}
	specific := descriptor(5, c.ASC)
	config := descriptor(4, []byte{0x40, 0x15, 0, 0, 0}, bmff.U32(0, 0), specific) // AAC, audio stream, no buffer size, no rates
	es := descriptor(3, bmff.U16(TrackID), []byte{0}, config, descriptor(6, []byte{2}))
	return bmff.Make("mp4a", head, bmff.Full("esds", 0, 0, es)), nil
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
