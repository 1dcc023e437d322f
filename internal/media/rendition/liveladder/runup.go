package liveladder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/window"
)

// An encoder begins with a segment, and pictures of that may refer to some in front of it: the leading pictures of an
// open group, behind a CRA of HEVC and before it in presentation, and those behind the beginning of a segment that had
// to be cut where there is no key frame. A decoder that begins with the segment leaves them out. So it begins further
// in front, and what it gives of that is not encoded.

// mostRunUp bounds what is decoded in front of a segment.
const mostRunUp = clockAt / 2

// furthestBack is how many segments the edge is asked for.
const furthestBack = 3

// runUp gives the pictures in front of the first step that have to be decoded for it, in the order of decoding; none
// where it can be decoded by itself, or where they are not at hand any more.
func (e *encoderRun) runUp(ctx context.Context, first *window.Step, init []byte) ([]window.Sample, error) {
	codec := codecOf(init)
	if first.Discontinuity || !refersBack(codec, first.Samples) {
		return nil, nil
	}
	var before []window.Sample
	for msn := first.MSN - 1; msn >= max(first.MSN-furthestBack, 0); msn-- {
		step, err := e.readSegment(ctx, msn)
		if errors.Is(err, window.ErrBehind) || err == nil && (step.MSN != msn || step.Init != first.Init) {
			break
		}
		if err != nil {
			return nil, err
		}
		before = slices.Concat(step.Samples, before)
		if i := entry(codec, before, &first.Samples[0]); i >= 0 {
			before = before[i:]
			if first.Samples[0].Time-before[0].Time > int64(mostRunUp/time.Second)*int64(e.c.opt.Timescale) {
				break
			}
			return before, nil
		}
		if step.Discontinuity {
			break
		}
	}
	e.c.opt.Logger.DebugContext(ctx, "pictures in front of a segment are not at hand: some can't be decoded",
		"media_sequence", first.MSN)
	return nil, nil
}

// readSegment reads a segment that has ended.
func (e *encoderRun) readSegment(ctx context.Context, msn int64) (window.Step, error) {
	f, err := e.c.opt.Edge.Follow(e.c.opt.Source, msn)
	if err != nil {
		return window.Step{}, fmt.Errorf("follow the live edge: %w", err)
	}
	defer f.Close()
	return f.Next(ctx) //nolint:wrapcheck // says what it is
}

// codecOf is the source's codec, if it is one whose pictures say where decoding can begin.
func codecOf(init []byte) frame.Codec {
	tracks, err := cmaf.NewReader(bytes.NewReader(init), cmaf.ReaderOptions{}).Tracks()
	if err != nil || len(tracks) != 1 {
		return ""
	}
	switch tracks[0].FourCC {
	case "avc1", "avc3":
		return frame.H264
	case "hvc1", "hev1":
		return frame.HEVC
	}
	return ""
}

// lengthSize is how many bytes stand in front of each NAL unit at the edge.
const lengthSize = 4

// refersBack reports whether pictures, which begin a segment, may refer to some in front of it. Leading pictures follow
// their CRA at once.
func refersBack(codec frame.Codec, pictures []window.Sample) bool {
	switch {
	case len(pictures) == 0:
		return false
	case !pictures[0].Key:
		return true
	case codec != frame.HEVC || !hevc.IsCRA(pictures[0].Data):
		return false
	}
	return len(pictures) == 1 || pictures[1].Shown < pictures[0].Shown
}

// entry is the last of the pictures with which decoding can begin so that the next one, and what follows that, is as it
// should be; -1: there is none.
func entry(codec frame.Codec, pictures []window.Sample, next *window.Sample) int {
	latest := next.Shown
	referredTo := 0 // pictures up to the next one to which others may refer: what recovery is counted in
	for i := range slices.Backward(pictures) {
		p := &pictures[i]
		frames, ok := 0, p.Key
		if codec == frame.H264 {
			if !h264.Disposable(p.Data, lengthSize) {
				referredTo++
			}
			frames, ok = h264.Recovers(p.Data, lengthSize)
		}
		if ok && frames <= referredTo && latest > p.Shown { // its leading pictures have all been
			return i
		}
		latest = max(latest, p.Shown)
	}
	return -1
}

// begin writes what goes in before the first step: its init segment and the run-up. It gives the number of the next
// movie fragment.
func (e *encoderRun) begin(ctx context.Context, in io.Writer, first *window.Step, init []byte) (n uint32, err error) {
	before, err := e.runUp(ctx, first, init)
	if err != nil {
		return 0, err
	}
	if _, err = in.Write(init); err != nil {
		return 0, err // the engine says what was written
	}
	if len(before) > 0 {
		e.mu.Lock()
		e.in.base = first.Samples[0].Time
		e.mu.Unlock()
	}
	n = 1
	var fragment []byte
	for _, p := range before {
		fragment = e.appendPicture(fragment[:0], n, &p, decodedOnly)
		if _, err = in.Write(fragment); err != nil {
			return 0, err // the engine says what was written
		}
		n++
	}
	return n, nil
}
