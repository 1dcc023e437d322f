package cmaf

import (
	"errors"

	"millrace/internal/media/codec"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/frame"
)

// ErrUnsupported means that a track is of a kind or codec that has no place in CMAF, or none that players read.
var ErrUnsupported = errors.New("the codec can not be packaged in CMAF")

// Init makes the init segment, ftyp and moov, of one track with ID 1 and no edit list. timescale is in ticks per
// second, not 0.
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
		// The presented size has square pixels; 16 bits before the point must do.
		shapeW, shapeH := codec.Shape(c)
		w := (uint64(c.Width)*uint64(shapeW) + uint64(shapeH)/2) / uint64(shapeH)
		if w == 0 || w > 0xffff {
			w = uint64(c.Width)
		}
		o.Width = uint32(w) << 16
		o.Height = uint32(c.Height) << 16
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
	tkhd := bmff.Full("tkhd", 0, 7, bmff.U32(0, 0, TrackID, 0, 0, 0, 0, 0, volume), bmff.U32(o.Matrix[:]...),
		bmff.U32(o.Width, o.Height))
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
	mvhd := bmff.Full("mvhd", 0, 0, bmff.U32(0, 0, 1000, 0, 0x10000, 0x01000000, 0, 0), bmff.U32(identity[:]...),
		bmff.U32(0, 0, 0, 0, 0, 0, TrackID+1))
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
