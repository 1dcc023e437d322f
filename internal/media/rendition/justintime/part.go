package justintime

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"millrace/internal/fault"
	"millrace/internal/media/container/cmaf"
)

// A segment that somebody waits for is encoded in parts side by side, one for each processor, where the source has key
// frames inside it: one encoder with as many threads waits for itself for a third of the time. Each part begins with a
// key frame and refers to no other.

// part is what one of several encoders makes of a segment.
type part struct {
	data     []byte // goes in
	count    int    // of its pictures
	pictures []picture
}

// least is how many pictures a part has at least: an encoder of its own takes as long to load as some are to be
// encoded.
const least = 12

// divide cuts the run's one segment into parts for so many processors; false: it stays whole.
func (r *run) divide(cores int) bool {
	if r.patient() || len(r.feeds) != 1 || !r.feeds[0].clean || r.feeds[0].odd || r.feeds[0].head != nil {
		return false
	}
	// What is shown in parts has key frames where those have been.
	if f := &r.feeds[0]; len(r.w.parts(f)) == 0 {
		r.parts = f.divide(cores)
		r.missing.Store(int32(len(r.parts)))
	}
	return r.parts != nil
}

// divide gives two or more parts; nil: there are none.
func (f *feed) divide(processors int) (parts []part) {
	cuts := spread(f.entries(), len(f.dts), processors)
	for i, from := range cuts {
		to := len(f.dts)
		if i+1 < len(cuts) {
			to = cuts[i+1]
		}
		samples, p := slices.Clone(f.samples[from:to]), part{count: to - from}
		for k := range samples {
			at, end := f.dts[from+k], f.end
			if from+k+1 < len(f.dts) {
				end = f.dts[from+k+1]
			}
			if end < at || end-at > math.MaxUint32 {
				return nil
			}
			samples[k].Duration = uint32(end - at)
		}
		p.data = cmaf.AppendFragment(nil, 1, cmaf.TrackID, uint64(f.dts[from]), samples)
		parts = append(parts, p)
	}
	if parts != nil {
		f.data, f.samples = nil, nil
	}
	return parts
}

// entries are the pictures from which on a decoder can begin, in the order of decoding: key frames before which no
// picture is decoded that is shown later, and behind which none that is shown earlier.
func (f *feed) entries() (at []int) {
	earliest := make([]int64, len(f.dts)+1) // of what is decoded from there on
	earliest[len(f.dts)] = math.MaxInt64
	for i, s := range slices.Backward(f.samples) {
		earliest[i] = min(earliest[i+1], f.dts[i]+int64(s.CompositionOffset))
	}
	latest := int64(math.MinInt64)
	for i, s := range f.samples {
		pts := f.dts[i] + int64(s.CompositionOffset)
		if s.Sync && pts == earliest[i] && latest < pts {
			at = append(at, i)
		}
		latest = max(latest, pts)
	}
	return at
}

// spread picks where parts begin, of the places where they may, so that they are of nearly the same length: n pictures
// for so many processors. There is one part more where otherwise a processor would have nothing to do for a tenth of
// the time.
func spread(entries []int, n, processors int) []int {
	if processors < 2 {
		return nil
	}
	cuts := cut(entries, n, processors)
	if longest(cuts, n)*processors > n*11/10 {
		if more := cut(entries, n, processors+1); len(more) > 1 && longest(more, n) < longest(cuts, n) {
			return more
		}
	}
	if len(cuts) < 2 {
		return nil
	}
	return cuts
}

// cut picks the places that are nearest to those of so many equal parts.
func cut(entries []int, n, parts int) (cuts []int) {
	for k := range parts {
		ideal, best := k*n/parts, -1
		for _, e := range entries {
			if best < 0 || abs(e-ideal) < abs(best-ideal) {
				best = e
			}
		}
		switch {
		case k == 0 && best != 0:
			return nil
		case k == 0 || best-cuts[len(cuts)-1] >= least && n-best >= least:
			cuts = append(cuts, best)
		}
	}
	return cuts
}

// longest is how many pictures the longest part has.
func longest(cuts []int, n int) (most int) {
	for i, from := range cuts {
		to := n
		if i+1 < len(cuts) {
			to = cuts[i+1]
		}
		most = max(most, to-from)
	}
	return most
}

func abs(n int) int { return max(n, -n) }

// readPart takes a part's frames. The last of the parts stores the segment when all is there: the encoders' end is not
// waited for.
func (r *run) readPart(ctx context.Context, p *part, in *cmaf.Reader) error {
	for {
		some, err := pictures(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p.pictures = append(p.pictures, some...)
		if len(p.pictures) < p.count {
			continue
		}
		if r.missing.Add(-1) > 0 {
			return nil
		}
		return r.join(ctx)
	}
}

// join stores the segment that the parts are.
func (r *run) join(ctx context.Context) error {
	f := r.feeds[0]
	var all []picture
	for i := range r.parts {
		p := &r.parts[i]
		if len(p.pictures) == 0 || !p.pictures[0].sync {
			return fault.New(fault.Internal, "the encoder gave %d pictures of part %d", len(p.pictures), i)
		}
		all = append(all, p.pictures...)
	}
	if err := f.place(all); err != nil {
		return err
	}
	return r.store(ctx, &f, all)
}
