package transcode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"millrace/internal/fault"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/cmaf"
)

// feed is a segment of the source with the times of its pictures, in ticks.
type feed struct {
	msn   int64
	data  []byte
	dts   []int64 // in the order of decoding
	pts   []int64 // ascending
	end   int64   // where the last one's decoding ends
	clean bool    // it can be decoded by itself, every picture of it

	samples []cmaf.Sample // the pictures, in the order of decoding

	head    []byte // what viewers have of the segment that is made of it
	had     int    // pictures that are in there, up to that place in pts
	parts   int    // movie fragments that are
	headEnd int64  // where decoding of those ends
}

// feed reads a segment.
func (w *Work) feed(ctx context.Context, msn int64) (feed, error) {
	data, err := w.Source.Segment(ctx, msn)
	if err != nil {
		return feed{}, fmt.Errorf("read segment %d: %w", msn, err)
	}
	fragments, err := cmaf.ParseFragments(data)
	if err != nil {
		return feed{}, fault.Wrap(fault.Internal, err, "segment %d of the source can't be read", msn)
	}
	f := feed{msn: msn, data: data, clean: w.chunk(msn).Independent}
	for _, x := range fragments {
		at := int64(x.BaseMediaDecodeTime)
		for _, s := range x.Samples {
			f.dts, f.samples = append(f.dts, at), append(f.samples, s)
			f.pts = append(f.pts, at+int64(s.CompositionOffset))
			at += int64(s.Duration)
		}
		f.end = at
	}
	if len(f.pts) == 0 {
		return feed{}, fault.New(fault.Internal, "segment %d of the source has no pictures", msn)
	}
	f.clean = f.clean && f.pts[0] == slices.Min(f.pts)
	slices.Sort(f.pts)
	return f, nil
}

// entry is what it takes to begin decoding with the first picture of a segment: so many frames in front of what is as it should be; -1: it is no
// entry.
func (f *feed) entry(lengthSize int) int {
	if !f.samples[0].Sync {
		return -1
	}
	if lengthSize == 0 {
		return 0
	}
	_, recovery := h264.Entry(f.samples[0].Data, lengthSize)
	return recovery
}

// onlyIDRs takes IDRs alone for key frames of H.264: at all others that a file lists decoding can't begin without losing pictures.
func (f *feed) onlyIDRs(lengthSize int) {
	for i := range f.samples {
		if s := &f.samples[i]; s.Sync && lengthSize > 0 {
			s.Sync, _ = h264.Entry(s.Data, lengthSize)
		}
	}
}

// lengthSize is how many bytes stand in front of a NAL unit; 0: it is not H.264.
func lengthSize(init []byte) int {
	tracks, err := cmaf.NewReader(bytes.NewReader(init), cmaf.ReaderOptions{}).Tracks()
	if err != nil || len(tracks) != 1 || tracks[0].FourCC != "avc1" && tracks[0].FourCC != "avc3" {
		return 0
	}
	return tracks[0].LengthSize
}

var errUnplaced = errors.New("the encoder gave pictures of no time that went in")

// has says whether every one of some pictures is of a time that went in.
func (f *feed) has(pictures []picture) error {
	for i := range pictures {
		if _, ok := slices.BinarySearch(f.pts, pictures[i].pts); !ok {
			return errUnplaced
		}
	}
	return nil
}
