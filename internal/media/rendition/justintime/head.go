package justintime

import (
	"context"
	"fmt"
	"slices"

	"millrace/internal/fault"
	"millrace/internal/media/container/cmaf"
)

// A segment that was begun while it was live, and not gone on with, is made behind its head: the parts that viewers
// have. A key frame stands behind them. Only what is not reordered is ever begun.

// behead finds out what viewers have of a segment.
func (m *Maker) behead(ctx context.Context, w *Work, f *feed) error {
	if !w.Rung.NoReorder {
		return nil
	}
	if w.Head != nil {
		f.head = w.Head(f.msn)
	}
	if f.head == nil {
		head, err := m.opt.Store.Read(ctx, w.HeadKey(f.msn))
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read head of segment %d: %w", f.msn, err)
		}
		f.head = head
	}
	fragments, err := cmaf.ParseFragments(f.head)
	if err != nil || len(fragments) == 0 {
		return fault.Wrap(fault.Internal, err, "the beginning of segment %d can't be read", f.msn)
	}
	last := &fragments[len(fragments)-1]
	f.parts, f.headEnd = len(fragments), int64(last.BaseMediaDecodeTime)
	for _, s := range last.Samples {
		f.headEnd += int64(s.Duration)
	}
	f.had, _ = slices.BinarySearch(f.dts, f.headEnd)
	return nil
}

// keys is how many key frames are asked for.
func (f *feed) keys() int {
	if f.had > 0 && f.had < len(f.pts) {
		return 2
	}
	return 1
}

// behind is the first picture behind the head.
func (f *feed) behind(pictures []picture) (int, error) {
	if f.had == 0 {
		return 0, nil
	}
	if f.had >= len(f.pts) {
		return len(pictures), nil
	}
	i := slices.IndexFunc(pictures, func(p picture) bool { return p.pts >= f.pts[f.had] })
	if i < 0 {
		return len(pictures), nil
	}
	if !pictures[i].sync {
		return 0, fault.New(fault.Internal, "the encoder gave no key frame behind what viewers have")
	}
	return i, nil
}

// parts are after how many pictures of the source's segment movie fragments end; none: one has all.
func (w *Work) parts(f *feed) []int {
	if w.Parts == nil {
		return nil
	}
	ends, alike := w.Parts(f.msn)
	if alike {
		return f.ends
	}
	return ends
}

// fragments are after how many pictures movie fragments end, those behind the head from picture `from` on: there is one
// for each part, also where the decoder has left out pictures. One that would be empty takes a picture from the next,
// while there are some.
func (w *Work) fragments(f *feed, pictures []picture, from int) []int {
	var out []int
	ends := w.parts(f)
	if n := len(ends); n < f.parts || n == 0 || ends[n-1] != len(f.pts) {
		if from == len(pictures) {
			return nil
		}
		return []int{len(pictures)}
	}
	for k := f.parts; k < len(ends); k++ {
		to, left := from, len(ends)-1-k
		for to < len(pictures) {
			if rank, _ := slices.BinarySearch(f.pts, pictures[to].pts); rank >= ends[k] {
				break
			}
			to++
		}
		to = max(min(max(to, from+1), len(pictures)-left), from)
		if left == 0 {
			to = len(pictures)
		}
		out, from = append(out, to), to
	}
	return out
}
