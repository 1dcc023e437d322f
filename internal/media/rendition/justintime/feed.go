package justintime

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"millrace/internal/fault"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/delivered"
)

// feed is a segment of the source with the times of its pictures, in ticks.
type feed struct {
	msn   int64
	data  []byte
	dts   []int64 // in the order of decoding
	pts   []int64 // ascending
	end   int64   // where the last one's decoding ends
	ends  []int   // after how many pictures its movie fragments end
	clean bool    // it can be decoded by itself, every picture of it
	odd   bool    // it has a picture whose time can't be meant, or is another's too

	samples []cmaf.Sample // the pictures, in the order of decoding

	head    []byte // what viewers have of the segment that is made of it
	had     int    // pictures that are in there, up to that place in pts
	parts   int    // movie fragments that are
	headEnd int64  // where decoding of those ends
}

// feed reads a segment.
func (w *Work) feed(ctx context.Context, msn int64) (feed, error) {
	data, err := delivered.Bytes(w.Source.Segment(ctx, msn))
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
		f.end, f.ends = at, append(f.ends, len(f.pts))
	}
	if len(f.pts) == 0 {
		return feed{}, fault.New(fault.Internal, "segment %d of the source has no pictures", msn)
	}
	f.clean = f.clean && f.pts[0] == slices.Min(f.pts)
	slices.Sort(f.pts)
	f.order(w.Video.Timescale)
	return f, nil
}

// apart is by how many seconds a picture may be shown outside of the time in which its segment is decoded.
const apart = 10

// order brings times back that lie far outside of the segment, and takes those apart that are the same.
func (f *feed) order(timescale uint32) {
	earliest, latest := f.dts[0]-apart*int64(timescale), f.end+apart*int64(timescale)
	for i, at := range f.pts {
		placed := min(max(at, earliest), latest)
		if i > 0 && placed <= f.pts[i-1] {
			placed = f.pts[i-1] + 1
		}
		f.odd = f.odd || placed != at
		f.pts[i] = placed
	}
}

// latest is when the last picture is shown.
func (f *feed) latest() int64 { return f.pts[len(f.pts)-1] }

// entry is what it takes to begin decoding with the first picture of a segment: so many frames in front of what is as
// it should be; -1: it is no entry.
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

// onlyIDRs takes IDRs alone for key frames of H.264: at all others that a file lists decoding can't begin without
// losing pictures.
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

// place gives pictures the times that went in. A decoder that finds times in disorder, and a muxer, give some of them
// others: each picture is put to the nearest time that is free, in the order in which they are shown.
func (f *feed) place(pictures []picture) error {
	known, used := 0, map[int64]bool{}
	for i := range pictures {
		if _, ok := slices.BinarySearch(f.pts, pictures[i].pts); ok && !used[pictures[i].pts] {
			known, used[pictures[i].pts] = known+1, true
		}
	}
	switch {
	case known == len(pictures):
		return nil
	case len(pictures) > len(f.pts) || known == 0 && len(pictures) > 1 && !f.odd:
		return errUnplaced
	}
	order := make([]int, len(pictures))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(pictures[a].pts, pictures[b].pts) })
	next := 0
	for k, i := range order {
		last := len(f.pts) - (len(order) - k) // so that there is a time for each that follows
		for next < last && distance(f.pts[next+1], pictures[i].pts) <= distance(f.pts[next], pictures[i].pts) {
			next++
		}
		pictures[i].pts = f.pts[next]
		next++
	}
	return nil
}

func distance(a, b int64) int64 { return max(a-b, b-a) }
