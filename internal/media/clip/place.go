package clip

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"millrace/internal/media/container/cmaf"
)

// place stores a segment of pictures that were made and of those that stay as they are, each at its time in the
// recording; what is made is decoded as long before it is shown as the recording's.
func (rc *renditionCut) place(ctx context.Context, r *segment, init int, made []picture) error {
	front, back, err := r.parts(made)
	if err != nil {
		return err
	}
	kept := r.samples[r.keep:r.kept]
	c := rc.src.Chunks[r.chunk]
	end := c.Time + c.Duration
	if r.shorter {
		if end = r.stop - r.delay(); len(kept) > 0 {
			end = max(end, kept[len(kept)-1].dts+int64(len(back))+1)
		}
	}
	var samples []cmaf.Sample
	var times, shown []int64
	lay := func(pictures []picture, before, end int64) {
		from := len(times)
		times = append(times, make([]int64, len(pictures))...)
		for i, p := range slices.Backward(pictures) {
			end = max(min(p.pts-r.delay(), end-1), before+int64(i)+1)
			times[from+i] = end
		}
		for _, p := range pictures {
			samples, shown = append(samples, cmaf.Sample{Sync: p.sync, Data: p.data}), append(shown, p.pts)
		}
	}
	until := end
	if len(kept) > 0 {
		until = kept[0].dts
	}
	lay(front, none, until)
	for _, s := range kept {
		samples, times, shown = append(samples, s.Sample), append(times, s.dts), append(shown, s.pts)
	}
	if len(back) > 0 {
		lay(back, times[len(times)-1], end)
	}
	times = append(times, end)
	if by := r.start - shown[0]; r.later && by > 0 { // the first picture is shown from the clip's beginning on
		shown[0], times[0] = r.start, max(min(times[0]+by, times[1]-1), times[0])
	}
	for i := range samples {
		long, offset := times[i+1]-times[i], shown[i]-times[i]
		if times[i] < 0 || long < 0 || long > math.MaxUint32 || offset < math.MinInt32 || offset > math.MaxInt32 {
			return fmt.Errorf("picture %d of a segment is decoded at %d and shown at %d, the next one is decoded at %d",
				i, times[i], shown[i], times[i+1])
		}
		samples[i].Duration, samples[i].CompositionOffset = uint32(long), int32(offset)
	}
	c.Init, c.Time, c.Duration = init, times[0], end-times[0]
	c.Independent = c.Independent || r.later || len(front) > 0
	return rc.store(ctx, r.chunk, c, samples)
}

// parts are what was made for in front of the pictures that stay and for behind them. The first of each stands for
// those in front of it that could not be decoded.
func (seg *segment) parts(made []picture) (front, back []picture, err error) {
	for _, p := range made {
		if p.i < seg.keep {
			front = append(front, p)
		} else {
			back = append(back, p)
		}
	}
	if len(front) == 0 && seg.from < seg.keep || len(back) == 0 && seg.kept < seg.until {
		return nil, nil, errors.New("the encoder gave no picture of an end")
	}
	if len(front) > 0 {
		front[0].pts = seg.start
	}
	if len(back) > 0 {
		back[0].pts = seg.pts[seg.kept]
	}
	return front, back, nil
}

// delay is how long before a picture is shown it is decoded. Of the first one behind a discontinuity the segment's time
// says it, see cmaf.Start.
func (seg *segment) delay() int64 {
	return max(seg.samples[0].pts-min(seg.samples[0].dts, seg.time), 0)
}
