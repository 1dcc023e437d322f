package mp4

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// track makes a track of a trak box. One that is neither video nor audio nor text comes back with an ID and no FourCC.
func (ix *indexer) track(trak []byte) (*Track, error) {
	if hdlr := bmff.Find(trak, "mdia", "hdlr"); len(hdlr) < 12 || !known(bmff.FourCC(hdlr[8:12])) {
		return ignored(trak)
	}
	b, err := bmff.ParseTrack(trak)
	if err != nil {
		return nil, err
	}
	t := &Track{
		ID:        b.ID,
		Timescale: b.Timescale,
		Language:  b.Language,
		Name:      trackName(trak, b.Name),
		matrix:    b.Matrix,
		shownW:    b.Width,
		shownH:    b.Height,
	}
	switch {
	case b.Handler.Is("vide"):
		t.Kind = frame.Video
	case b.Handler.Is("soun"):
		t.Kind = frame.Audio
	default:
		t.Kind = frame.Text
	}
	t.Config.Kind = t.Kind
	t.Enabled = bmff.Find(trak, "tkhd")[3]&1 == 1
	if err := ix.fill(t, b, trak); err != nil {
		return nil, fmt.Errorf("track %d: %w", t.ID, err)
	}
	return t, nil
}

func known(handler bmff.FourCC) bool {
	return slices.Contains([]string{"vide", "soun", "text", "sbtl", "subt", "clcp"}, handler.String())
}

// ignored finds the ID of a track that is left out, as IDs must be unique over all.
func ignored(trak []byte) (*Track, error) {
	r := bmff.NewReader(bmff.Find(trak, "tkhd"))
	version, _ := r.Full()
	r.Sized(version)
	r.Sized(version)
	id := r.U32()
	if r.Err() != nil {
		return nil, bmff.Malformed("a track has no usable header")
	}
	return &Track{ID: id}, nil
}

func (ix *indexer) fill(t *Track, b *bmff.Track, trak []byte) error {
	tabs, err := readTables(b.Tables)
	var description uint32
	if err == nil {
		t.samples, description, err = tabs.build(ix.size, ix.left)
	}
	ix.left -= t.Len()
	if errors.Is(err, errNoTables) {
		err = nil
		description = ix.defaults[t.ID].Description
	}
	if description == 0 {
		description = 1
	}
	if int64(description) > int64(len(b.Entries)) {
		return bmff.Malformed("its samples have description %d, there are %d", description, len(b.Entries))
	}
	t.description = description
	entry := b.Entries[description-1]
	entry.Raw = bytes.Clone(entry.Raw) // not to hold the whole moov
	t.FourCC, t.SampleEntry = entry.Type.String(), entry.Raw
	if codecErr := t.codec(entry); codecErr != nil {
		return codecErr
	}
	if t.Changes = tabs.several; t.Changes {
		t.Config = frame.Config{Kind: t.Kind}
	}
	if t.Config.Codec == "" { // nothing will be cut from it
		if err != nil {
			t.samples = samples{}
		}
	} else if err != nil {
		return err
	}
	if t.Config.Codec != "" && external(trak) {
		return fmt.Errorf("%w: its media is in another file", ErrUnsupported)
	}
	if t.Kind == frame.Audio {
		t.samples.sync = nil
	}
	t.edits(b.Edits, ix.file.MovieTimescale)
	if t.Kind == frame.Video {
		t.picture(entry)
	}
	return nil
}

// codec fills what the sample entry says.
func (t *Track) codec(entry bmff.SampleEntry) error {
	switch t.FourCC {
	case "encv", "enca", "enct", "drms", "drmi":
		return ErrEncrypted
	}
	c, err := bmff.ParseEntry(entry)
	if errors.Is(err, bmff.ErrUnknownCodec) {
		return nil
	}
	if err != nil {
		return err
	}
	if c.Config.Kind != t.Kind {
		return bmff.Malformed("a %s track has samples of %s", t.Kind, t.FourCC)
	}
	t.Config, t.LengthSize = c.Config, c.LengthSize
	t.PARWidth, t.PARHeight = int(c.PARWidth), int(c.PARHeight)
	if c.QuickTime {
		if t.SampleEntry, err = cmaf.SampleEntry(c.Config); err != nil {
			return err
		}
	}
	if len(t.SampleEntry) >= 16 {
		binary.BigEndian.PutUint16(t.SampleEntry[14:], 1) // the init segment has one data reference
	}
	return nil
}

// SPSInfo is what the sequence parameter set of an H.264 track says. Errors: those of h264.Info.
func (t *Track) SPSInfo() (h264.SPSInfo, error) { return h264.Info(t.Config.SPS) }

// picture fills size, shape of pixels and rotation of a video track.
func (t *Track) picture(entry bmff.SampleEntry) {
	if len(entry.Raw) >= 36 {
		t.Width, t.Height = int(binary.BigEndian.Uint16(entry.Raw[32:])), int(binary.BigEndian.Uint16(entry.Raw[34:]))
	}
	if t.Config.Codec == frame.H264 && len(t.Config.SPS) > 0 {
		t.Width, t.Height = t.Config.Width, t.Config.Height
		if info, err := t.SPSInfo(); err == nil && (t.PARWidth <= 0 || t.PARHeight <= 0) {
			t.PARWidth, t.PARHeight = info.PARWidth, info.PARHeight
		}
	}
	if t.PARWidth <= 0 || t.PARHeight <= 0 {
		t.PARWidth, t.PARHeight = 1, 1
	}
	t.Sideways = bmff.Sideways(t.matrix)
	a, b, c, d := int32(t.matrix[0]), int32(t.matrix[1]), int32(t.matrix[3]), int32(t.matrix[4])
	switch {
	case a > 0 && b == 0 && c == 0 && d > 0:
	case a == 0 && b > 0 && c < 0 && d == 0:
		t.Rotation = 90
	case a < 0 && b == 0 && c == 0 && d < 0:
		t.Rotation = 180
	case a == 0 && b < 0 && c > 0 && d == 0:
		t.Rotation = 270
	case a == 0 && b == 0 && c == 0 && d == 0: // some writers leave the matrix out
		t.matrix = [9]uint32{}
	default:
		t.Mirrored = true
	}
}

// edits takes in the edit list: any pauses and one edit at normal speed exactly; of others the first edit.
func (t *Track) edits(list []bmff.Edit, movieTimescale uint32) {
	const far = 1 << 60 // so that sums with decoding times can't overflow
	found := false
	for _, e := range list {
		switch {
		case e.MediaTime < 0 && !found:
			t.EmptyEdit = min(t.EmptyEdit+rescale(e.Duration, t.Timescale, movieTimescale, far), far)
		case e.MediaTime < 0 && e.Duration == 0:
		case found || e.MediaTime < 0:
			t.NonStandardEdit = true
		default:
			found = true
			t.MediaTime, t.EditDuration = min(e.MediaTime, far), rescale(e.Duration, t.Timescale, movieTimescale, far)
			if e.Rate != 1<<16 {
				t.NonStandardEdit = true
			}
		}
	}
	if t.NonStandardEdit {
		t.EditDuration = 0 // the end of the first edit is not the end of the presentation
	}
}

// rescale converts d ticks from one timescale to another, to the nearest and to most at most.
func rescale(d uint64, to, from uint32, most int64) int64 {
	hi, lo := bits.Mul64(d, uint64(to))
	lo, carry := bits.Add64(lo, uint64(from)/2, 0)
	hi += carry
	if hi >= uint64(from) {
		return most
	}
	q, _ := bits.Div64(hi, lo, uint64(from))
	return int64(min(q, uint64(most)))
}

// external reports whether the track's data reference names another file.
func external(trak []byte) bool {
	r := bmff.NewReader(bmff.Find(trak, "mdia", "minf", "dinf", "dref"))
	r.Full()
	if r.U32() == 0 || r.Err() != nil {
		return false // nothing said: this file
	}
	ref, _, err := bmff.Next(r.Left())
	return err == nil && len(ref.Body) >= 4 && ref.Body[3]&1 == 0 && len(ref.Body) > 4
}

// trackName prefers the title in the user data; a handler's name is one only when it isn't the writing program's own.
func trackName(trak []byte, handler string) string {
	if b := bmff.Find(trak, "udta", "name"); b != nil {
		b = bytes.Trim(b, "\x00")
		if len(b) > 0 && len(b) <= 256 {
			return strings.ToValidUTF8(string(b), "")
		}
	}
	for _, own := range [...]string{
		"Handler", "handler", "Core Media", "ISO Media", "Apple ", "GPAC", "L-SMASH", "Bento4", "Mainconcept",
		"Alias Data",
	} {
		if strings.Contains(handler, own) {
			return ""
		}
	}
	return handler
}
