// Package mp4 indexes a stored MP4, MOV or fragmented MP4: its samples, their decoding and presentation times, and the
// byte ranges where they lie, so that segments can be made on request. It reads box headers, the moov and the moofs,
// never the media. An io.ReaderAt in, values out: it must never know files, sockets, time of day or a logger, and it
// starts no goroutines. A File is immutable once made and may be shared.
package mp4

import (
	"errors"
	"fmt"
	"math"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/frame"
)

// The errors of Index and of reading wrap one of these, or the reader's own. Their text is fit for the person who
// uploaded the file.
var (
	// ErrNotMP4 means that the bytes are of some other format.
	ErrNotMP4 = errors.New("not an MP4 or MOV file")
	// ErrMalformed means that the file contradicts itself.
	ErrMalformed = bmff.ErrMalformed
	// ErrTruncated means that something lies past the end of the file: an upload or a recording that was not finished.
	ErrTruncated = errors.New("the file is cut off")
	// ErrUnsupported means that the file is well-formed and uses something that is not handled.
	ErrUnsupported = errors.New("unsupported MP4")
	// ErrEncrypted wraps ErrUnsupported.
	ErrEncrypted = fmt.Errorf("%w: it is encrypted", ErrUnsupported)
	// ErrTooLarge means that more was asked for at once than is allowed.
	ErrTooLarge = errors.New("too many bytes at once")
)

// File is the index of a file.
type File struct {
	// Tracks of video, audio and text in the order of the file; others (time code, metadata) are left out.
	Tracks []*Track
	// MovieTimescale is in ticks per second.
	MovieTimescale uint32
	// Brands of the ftyp box, the major one first; none in old QuickTime files.
	Brands []string
	// Fragmented tells that samples came from moof boxes.
	Fragmented bool
	// Truncated tells that a fragmented file ends inside its last fragment, which was left out.
	Truncated bool
}

// Bytes is about how much memory the index holds.
func (f *File) Bytes() int64 {
	n := int64(256)
	for _, t := range f.Tracks {
		n += t.Bytes()
	}
	return n
}

// Track is a track and the index of its samples.
type Track struct {
	ID   uint32
	Kind frame.Kind
	// FourCC of the sample entry, as "avc1".
	FourCC string
	// Config is filled for H.264 and AAC. Otherwise its Codec is "", and Len may be 0 although the track has samples.
	Config frame.Config
	// Changes tells that the samples have several descriptions, as where clips of different cameras were put together:
	// of such a track no one Config is true, and none is given.
	Changes bool
	// LengthSize is the number of bytes before each NAL unit of a sample, H.264 only.
	LengthSize int
	// Timescale in ticks per second; every time of a track is in these.
	Timescale uint32
	// Language is an ISO 639-2 code, "" when undetermined. Name is what the file calls the track, "" when that says
	// nothing.
	Language, Name string
	// Enabled is the track header's flag. Alternates are often not enabled.
	Enabled bool

	// Width and Height in pixels as coded, PARWidth to PARHeight the shape of a pixel (1 and 1 when square), before
	// Rotation; video only.
	Width, Height       int
	PARWidth, PARHeight int
	// Rotation is by how much to turn the picture clockwise for display: 0, 90, 180 or 270 degrees.
	Rotation int
	// Mirrored tells that the matrix does something that Rotation can't say.
	Mirrored bool
	// Sideways tells that the picture's width is shown as its height.
	Sideways bool
	// SampleEntry is the box for an init segment's sample description.
	SampleEntry []byte

	// MediaTime is the composition time at which the presentation begins, EmptyEdit the pause in front of it,
	// EditDuration how long it lasts; 0 means to the end.
	MediaTime, EmptyEdit, EditDuration int64
	// Start is the place on the clock of a fragmented file, in ticks, that the times of its tracks count from; 0 in any
	// other.
	Start int64
	// NonStandardEdit tells that the edit list has more than pauses and one edit at normal speed. Only its first edit
	// is heeded then.
	NonStandardEdit bool

	description    uint32 // which sample entry is in use, from 1
	matrix         [9]uint32
	shownW, shownH uint32 // of the track header, 16.16
	samples        samples
	shift          int64 // part of Start, that is taken off decoding times; the rest is, off the pause of the edit list
}

// Sample is one sample as the file has it.
type Sample struct {
	// Offset in the file and Size, in bytes.
	Offset int64
	Size   uint32
	// DTS before edits, as the file says, CTS what to add for the composition time; Duration is up to the next sample's
	// DTS.
	DTS      int64
	CTS      int32
	Duration uint32
	Sync     bool
}

// Len is the number of samples.
func (t *Track) Len() int { return len(t.samples.sizes) }

// Sample returns sample i, from 0 to Len()-1, in decoding order.
func (t *Track) Sample(i int) Sample {
	s := &t.samples
	return Sample{
		Offset:   s.offsets[i],
		Size:     s.sizes[i],
		DTS:      s.dtsAt(i),
		CTS:      s.ctsAt(i),
		Duration: s.duration(i),
		Sync:     s.syncAt(i),
	}
}

// DTS is sample i's decoding time after edits, counted from Start; it may be negative.
func (t *Track) DTS(i int) int64 { return t.samples.dtsAt(i) - t.shift - t.MediaTime + t.EmptyEdit }

// PTS is when sample i is shown, after edits. Below EditStart it is priming (or needed to decode what follows), from
// EditEnd on it is trimmed.
func (t *Track) PTS(i int) int64 { return t.DTS(i) + int64(t.samples.ctsAt(i)) }

// Sync reports whether the file calls sample i a sync sample. Not all of these are IDRs; see IDRs.
func (t *Track) Sync(i int) bool { return t.samples.syncAt(i) }

// EditStart is the PTS at which the presentation begins.
func (t *Track) EditStart() int64 { return t.EmptyEdit }

// EditEnd is the PTS at which the presentation ends; math.MaxInt64 when the edit list does not say.
func (t *Track) EditEnd() int64 {
	if t.EditDuration == 0 {
		return math.MaxInt64
	}
	return t.EmptyEdit + t.EditDuration
}

// Duration is from the first sample's DTS to the end of the last one.
func (t *Track) Duration() int64 {
	n := t.Len()
	if n == 0 {
		return 0
	}
	return t.samples.dtsAt(n-1) + int64(t.samples.duration(n-1)) - t.samples.dtsAt(0)
}

// Size is the number of bytes of all samples.
func (t *Track) Size() int64 {
	var n int64
	for _, s := range t.samples.sizes {
		n += int64(s)
	}
	return n
}

// Bytes is about how much memory the track's index holds.
func (t *Track) Bytes() int64 {
	s := &t.samples
	return int64(512 + len(t.SampleEntry) + 8*cap(s.offsets) + 4*cap(s.sizes) + 8*cap(s.dts) + 4*cap(s.cts) +
		8*cap(s.sync))
}
