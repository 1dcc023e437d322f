package clip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
)

// film cuts the video. What is shown at an instant of the clip is what the recording shows then: the first picture is the one that is on
// screen where the clip begins, the last one the one that is right in front of its end. Times that lie within two milliseconds of a
// picture's are that picture's.
func (y *laneCut) film(ctx context.Context) error {
	first, err := y.begin(ctx)
	if err != nil {
		return err
	}
	last, err := y.end(ctx, first)
	if err != nil {
		return err
	}
	if y.a == y.b {
		if first.film == nil {
			return nil
		}
		first.until, first.shorter = last.until, last.shorter
		return y.make(ctx, first)
	}
	if first.film != nil {
		if err := y.make(ctx, first); err != nil {
			return err
		}
	}
	if last.film != nil {
		return y.make(ctx, last)
	}
	return nil
}

// reel is one of the two segments at the ends.
type reel struct {
	chunk int
	film  []sample // in the order of decoding; nil where there is no media
	pts   []int64  // ascending

	from, until int   // which of pts are shown
	start       int64 // when the first one is
	stop        int64 // when the last one's time is over
	later       bool  // something in front is left out
	shorter     bool  // something at the end is
}

func (y *laneCut) load(ctx context.Context, i int) (*reel, error) {
	r := &reel{chunk: i}
	c := &y.src.Chunks[i]
	if c.Gap {
		return r, nil
	}
	var err error
	if _, r.film, err = y.read(ctx, i); err != nil {
		return nil, err
	}
	for _, s := range r.film {
		r.pts = append(r.pts, s.pts)
	}
	slices.Sort(r.pts)
	r.until, r.start, r.stop = len(r.pts), r.pts[0], y.ticks(y.border(i+1))
	return r, nil
}

// begin finds the first picture; the clip begins with it.
func (y *laneCut) begin(ctx context.Context) (*reel, error) {
	for {
		r, err := y.load(ctx, y.a)
		if err != nil {
			return nil, err
		}
		at, slack := y.ticks(y.from), y.ticks(snap)
		if r.film == nil {
			y.shorten(y.a, at, none)
			return r, nil
		}
		if at+slack >= r.stop && y.a < y.b { // the next segment's picture is meant
			y.a++
			y.from = y.border(y.a)
			continue
		}
		if y.whole && y.a == 0 {
			return r, nil
		}
		for r.from+1 < len(r.pts) && r.pts[r.from+1] <= at+slack {
			r.from++
		}
		r.start = max(r.pts[r.from], at)
		if r.start-r.pts[r.from] <= slack {
			r.start = r.pts[r.from]
		}
		r.later = r.start > r.pts[0]
		if r.later || r.start <= at+slack { // unless the first picture comes late
			y.from = float64(r.start) / float64(y.src.Timescale)
		}
		return r, nil
	}
}

// end finds the last picture.
func (y *laneCut) end(ctx context.Context, first *reel) (*reel, error) {
	for {
		r := first
		if y.b > y.a {
			var err error
			if r, err = y.load(ctx, y.b); err != nil {
				return nil, err
			}
		}
		at, slack := y.ticks(y.to), y.ticks(snap)
		if r.film == nil {
			y.shorten(y.b, none, at)
			return r, nil
		}
		if at+slack >= r.stop {
			y.to = max(y.to, float64(r.stop)/float64(y.src.Timescale))
			return r, nil
		}
		n := 0
		for n < len(r.pts) && r.pts[n] < at-slack {
			n++
		}
		if n == 0 && y.b > y.a { // where segments border is known by decoding times only
			y.b--
			y.to = y.border(y.b + 1)
			continue
		}
		if n <= r.from {
			return nil, ErrEmpty
		}
		if n < len(r.pts) && r.pts[n]-at <= slack {
			at = r.pts[n]
		}
		r.until, r.stop, r.shorter = n, at, true
		y.to = float64(at) / float64(y.src.Timescale)
		return r, nil
	}
}

// shorten cuts a chunk without media; -1 leaves an end where it is.
func (y *laneCut) shorten(i int, from, to int64) {
	c, ok := y.made[i]
	if !ok {
		c = y.src.Chunks[i]
	}
	begin, end := y.ticks(y.border(i)), y.ticks(y.border(i+1))
	if from > begin {
		c.Time, c.Duration = c.Time+from-begin, c.Duration-(from-begin)
	}
	if to >= 0 && to < end {
		c.Duration -= end - to
	}
	c.Duration = max(c.Duration, 1)
	y.made[i] = c
}

// make stores a segment that differs from the recording's.
func (y *laneCut) make(ctx context.Context, r *reel) error {
	switch {
	case !r.later && !r.shorter:
		return nil
	case !r.later && r.prefix():
		return y.copy(ctx, r)
	}
	return y.encode(ctx, r)
}

// prefix says that what is shown is what is decoded first.
func (r *reel) prefix() bool {
	return !slices.ContainsFunc(r.film[:r.until], func(s sample) bool { return s.pts >= r.stop || s.pts > r.pts[r.until-1] })
}

// copy takes the first samples of a segment as they are.
func (y *laneCut) copy(ctx context.Context, r *reel) error {
	kept := r.film[:r.until]
	samples := make([]cmaf.Sample, len(kept))
	for i := range kept {
		samples[i] = kept[i].Sample
	}
	last := &kept[len(kept)-1]
	end := max(r.stop-r.delay(), last.dts+1)
	samples[len(samples)-1].Duration = uint32(end - last.dts)
	c := y.src.Chunks[r.chunk]
	c.Duration = end - c.Time
	return y.store(ctx, r.chunk, c, samples)
}

// delay is how long before a picture is shown it is decoded.
func (r *reel) delay() int64 { return max(r.film[0].pts-r.film[0].dts, 0) }

// encode makes the pictures of a segment that are shown anew, the first one a key frame. They are decoded in the order in which they are
// shown, as far ahead as in the recording.
func (y *laneCut) encode(ctx context.Context, r *reel) error {
	args := encode.PictureCut{From: r.pts[r.from], To: r.pts[r.until-1], Timescale: y.src.Timescale, Bitrate: max(int(2*y.src.Peak), 2_000_000)}
	init, feed, err := y.feed(ctx, r)
	if err != nil {
		return err
	}
	n := y.src.Chunks[r.chunk].Init
	if err = y.describe(&args, n, init); err != nil {
		return err
	}
	var pictures []picture
	var entry []byte
	err = y.Encoder.CutPicture(ctx, args, func(w io.Writer) error {
		for _, b := range append([][]byte{init}, feed...) {
			if _, werr := w.Write(b); werr != nil {
				return werr // the engine says what was written
			}
		}
		return nil
	}, func(in io.Reader) error {
		var rerr error
		entry, pictures, rerr = readPictures(in)
		return rerr
	})
	if err != nil {
		return err
	}
	shown := r.pts[r.from:r.until]
	if len(pictures) == 0 || len(pictures) > len(shown) {
		return fmt.Errorf("the encoder gave %d pictures of %d", len(pictures), len(shown))
	}
	if n, err = y.adapt(ctx, n, init, entry, args.Codec); err != nil {
		return err
	}
	return y.place(ctx, r, n, pictures)
}

// place gives encoded pictures the times of the recording's and stores them. Those that could not be decoded are the first.
func (y *laneCut) place(ctx context.Context, r *reel, init int, pictures []picture) error {
	shown := r.pts[r.from:r.until]
	shift := shown[len(shown)-1] - pictures[len(pictures)-1].pts
	if len(pictures) == len(shown) {
		shift = shown[0] - pictures[0].pts
	}
	for i := range pictures {
		pictures[i].pts += shift
	}
	pictures[0].pts = max(pictures[0].pts, r.start)
	if len(pictures) < len(shown) { // it stands for those in front of it
		pictures[0].pts = r.start
	}
	c := y.src.Chunks[r.chunk]
	end := c.Time + c.Duration
	if r.shorter {
		end = r.stop - r.delay()
	}
	samples := make([]cmaf.Sample, len(pictures))
	next := end
	for i := len(pictures) - 1; i >= 0; i-- {
		p := pictures[i]
		at := min(p.pts-r.delay(), next-1)
		if at < 0 || next-at > math.MaxUint32 || p.pts-at > math.MaxInt32 {
			return fmt.Errorf("picture %d of a segment is decoded at %d and shown at %d", i, at, p.pts)
		}
		samples[i] = cmaf.Sample{Duration: uint32(next - at), CompositionOffset: int32(p.pts - at), Sync: p.sync, Data: p.data}
		next = at
	}
	c.Init, c.Time, c.Duration, c.Independent = init, next, end-next, true
	return y.store(ctx, r.chunk, c, samples)
}

// furthestBack is how many segments are decoded in front of one that can't be decoded by itself.
const furthestBack = 5

// feed is what has to be decoded: the segment, and those in front of it that it depends on.
func (y *laneCut) feed(ctx context.Context, r *reel) (init []byte, segments [][]byte, err error) {
	if init, err = y.Source.Init(ctx, y.src, y.src.Chunks[r.chunk].Init); err != nil {
		return nil, nil, fmt.Errorf("read init segment: %w", err)
	}
	for i := r.chunk; ; i-- {
		raw, film, err := y.read(ctx, i)
		if err != nil {
			return nil, nil, err
		}
		segments = append(segments, raw)
		leading := slices.ContainsFunc(film, func(s sample) bool { return s.pts < film[0].pts })
		if y.src.Chunks[i].Independent && !leading || r.chunk-i == furthestBack || !y.continues(i) {
			slices.Reverse(segments)
			return init, segments, nil
		}
	}
}

// picture is what the encoder gave.
type picture struct {
	pts  int64
	sync bool
	data []byte
}

// maxPicture bounds one of them, in bytes.
const maxPicture = 32 << 20

func readPictures(in io.Reader) (entry []byte, out []picture, err error) {
	r := cmaf.NewReader(in, cmaf.ReaderOptions{MaxFragment: maxPicture})
	tracks, err := r.Tracks()
	if err != nil {
		return nil, nil, fmt.Errorf("read encoder: %w", err)
	}
	if len(tracks) != 1 {
		return nil, nil, fmt.Errorf("the encoder gave %d tracks", len(tracks))
	}
	for {
		fragments, err := r.Next()
		if errors.Is(err, io.EOF) {
			return tracks[0].SampleEntry, out, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read encoder: %w", err)
		}
		for _, f := range fragments {
			at := int64(f.BaseMediaDecodeTime)
			for _, s := range f.Samples {
				out = append(out, picture{at + int64(s.CompositionOffset), s.Sync, s.Data})
				at += int64(s.Duration)
			}
		}
	}
}

// codecs by the sample entry.
var codecs = map[string]frame.Codec{ //nolint:gochecknoglobals // a table
	"avc1": frame.H264, "avc3": frame.H264, "hvc1": frame.HEVC, "hev1": frame.HEVC, "av01": frame.AV1, "vp09": frame.VP9,
}

// describe says what the encoder has to match.
func (y *laneCut) describe(a *encode.PictureCut, n int, init []byte) error {
	entry := cmaf.EntryOf(init)
	if len(entry) < 8 {
		return fmt.Errorf("init segment %d of %s has no sample entry", n, y.src.ID)
	}
	if a.Codec = codecs[string(entry[4:8])]; a.Codec == "" {
		return ErrCodec
	}
	if a.Codec != frame.H264 {
		return nil
	}
	if y.sets == nil {
		y.sets = &sets{byInit: map[int]*mixed{}}
	}
	m, err := y.sets.of(n, entry)
	if err != nil {
		return err
	}
	a.Set = m.id
	if info, err := h264.Info(m.sps[0]); err == nil {
		a.Profile, a.Level, a.Interlaced = info.ProfileIDC, info.LevelIDC, info.Interlaced
	}
	return nil
}
