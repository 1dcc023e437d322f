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

// pictures makes the segments of the video that differ from the recording's. Their first picture is a key frame: what
// was decoded from a picture that is left out is encoded again, up to the next key frame; so are, at the end, those
// that were decoded from a later picture. All between stays as it is.
func (rc *renditionCut) pictures(ctx context.Context) error {
	var work []*segment
	for _, r := range rc.cutEnds {
		n := rc.src.Chunks[r.chunk].Init
		if rc.format == nil || rc.format.n != n {
			if err := rc.open(ctx, n); err != nil {
				return err
			}
		}
		if r.split(rc.format); r.from == r.keep && r.kept == r.until { // nothing is to be made
			if err := rc.place(ctx, r, n, nil); err != nil {
				return err
			}
			continue
		}
		if rc.format.codec == "" {
			return ErrCodec
		}
		work = append(work, r)
	}
	// One encoder makes both ends where it can be told to begin with a key frame twice, and both have the same
	// parameter sets.
	if len(work) == 2 && rc.format.codec == frame.H264 &&
		rc.src.Chunks[work[0].chunk].Init == rc.src.Chunks[work[1].chunk].Init {
		return rc.encode(ctx, work)
	}
	for _, r := range work {
		if err := rc.open(ctx, rc.src.Chunks[r.chunk].Init); err != nil {
			return err
		}
		if err := rc.encode(ctx, []*segment{r}); err != nil {
			return err
		}
	}
	return nil
}

// format is what pictures that are made have to match: one of the recording's init segments.
type format struct {
	n     int
	init  []byte
	entry []byte      // its sample entry
	codec frame.Codec // empty: one that can't be encoded
	size  int         // of H.264: bytes in front of a NAL unit
	// Of H.264: it is known in which order pictures are shown without seeing all of them.
	ordered bool
}

// codecs by the sample entry.
var codecs = map[string]frame.Codec{ //nolint:gochecknoglobals // a table
	"avc1": frame.H264, "avc3": frame.H264, "hvc1": frame.HEVC, "hev1": frame.HEVC, "av01": frame.AV1,
	"vp09": frame.VP9,
}

// open reads init segment n.
func (rc *renditionCut) open(ctx context.Context, n int) error {
	init, err := rc.Source(rc.src).Init(ctx, n)
	if err != nil {
		return fmt.Errorf("read init segment: %w", err)
	}
	s := &format{n: n, init: init, entry: cmaf.EntryOf(init)}
	if len(s.entry) < 8 {
		return fmt.Errorf("init segment %d of %s has no sample entry", n, rc.src.ID)
	}
	if s.codec = codecs[string(s.entry[4:8])]; s.codec == frame.H264 {
		var sets [][]byte
		if sets, _, s.size, err = h264.ParseAVCC(avcC(s.entry)); err != nil {
			return fmt.Errorf("read sample entry: %w", err)
		}
		s.ordered = len(sets) > 0
		for _, sps := range sets {
			info, failed := h264.Info(sps)
			s.ordered = s.ordered && failed == nil && info.ReorderFrames >= 0
		}
	}
	rc.format = s
	return nil
}

// fresh reports whether nothing that is decoded from this picture on needs one in front of it, if none that is shown
// earlier follows.
func (f *format) fresh(x *sample) bool {
	if f.codec != frame.H264 || !x.Sync {
		return x.Sync
	}
	idr, known, _ := h264.IsIDRPrefix(x.Data, f.size)
	return idr && known
}

// split finds what can stay as it is: whatever is decoded from the first sample that is kept up to the last is shown
// from the first picture that is kept up to the last.
func (seg *segment) split(s *format) {
	seg.keep, seg.kept = seg.until, seg.until
	keep, whole := none, 0
	latest := int64(math.MinInt64)
	for k := 0; k <= seg.until; k++ {
		if k == 0 || latest == seg.pts[k-1] { // the first k samples are the first k pictures
			if keep == none && k < seg.until && (!seg.later || k >= seg.from && s.fresh(&seg.samples[k])) {
				keep = k
			}
			whole = k
		}
		if k < seg.until {
			latest = max(latest, seg.samples[k].pts)
		}
	}
	switch {
	case keep == none || whole <= keep:
	case s.codec == frame.H264 || keep == seg.from && whole == seg.until:
		// others get an init segment of their own: all of it is made
		seg.keep, seg.kept = keep, whole
	}
}

// spans are the pictures that are made, in the order in which they are shown.
func (seg *segment) spans() [][2]int {
	var out [][2]int
	for _, s := range [][2]int{{seg.from, seg.keep}, {seg.kept, seg.until}} {
		if s[0] < s[1] {
			out = append(out, s)
		}
	}
	return out
}

// furthestBack is how many segments are decoded in front of one that can't be decoded by itself.
const furthestBack = 10

// needed is what has to be decoded for the pictures [from, until) of a segment, in that order: samples of its segment,
// and segments in front of it where it depends on them.
func (rc *renditionCut) needed(ctx context.Context, r *segment, from, until int) ([]sample, error) {
	start, end := none, 0
	latest := int64(math.MinInt64)
	for k := range r.samples {
		s := &r.samples[k]
		whole := k == 0 && !slices.ContainsFunc(r.samples, func(o sample) bool { return o.pts < s.pts }) ||
			k > 0 && latest == r.pts[k-1]
		if whole && k <= from && (rc.format.fresh(s) || k == 0 && rc.src.Chunks[r.chunk].Independent) {
			start = k
		}
		if s.pts <= r.pts[until-1] {
			end = k + 1
		}
		latest = max(latest, s.pts)
	}
	if start != none {
		return rc.format.without(r.samples[start:end], r.pts[from]), nil
	}
	out := r.samples[:end]
	for i := r.chunk; i > r.chunk-furthestBack && rc.continues(i); {
		i--
		pictures, err := rc.read(ctx, i)
		if err != nil {
			return nil, err
		}
		out = slices.Concat(pictures, out)
		if rc.src.Chunks[i].Independent &&
			!slices.ContainsFunc(pictures, func(s sample) bool { return s.pts < pictures[0].pts }) {
			break
		}
	}
	return out, nil
}

// without leaves out pictures that are shown before a time and that none is decoded from.
func (f *format) without(pictures []sample, before int64) []sample {
	if !f.ordered {
		return pictures
	}
	out := make([]sample, 0, len(pictures))
	for _, x := range pictures {
		if x.pts >= before || !h264.Disposable(x.Data, f.size) {
			out = append(out, x)
		}
	}
	return out
}

// order is what an encoder is asked for: stretches of several segments behind one another, on a clock of their own.
type order struct {
	args encode.PictureCut
	feed []byte
	// The pictures that are to come out: their times by that clock, and whose they are.
	want []int64
	mark []mark
}

// mark says that a picture is number i of those that a segment shows.
type mark struct {
	segment *segment
	i       int
}

// add asks for the pictures [from, until) of a segment.
func (o *order) add(r *segment, pictures []sample, from, until int, at int64) (next int64) {
	earliest, latest := pictures[0].dts, pictures[len(pictures)-1].dts+int64(pictures[len(pictures)-1].Duration)
	for i := range pictures {
		earliest, latest = min(earliest, pictures[i].pts), max(latest, pictures[i].pts+1)
	}
	shift := at - earliest
	samples := make([]cmaf.Sample, len(pictures))
	for i := range pictures {
		if samples[i] = pictures[i].Sample; i+1 < len(pictures) {
			samples[i].Duration = uint32(pictures[i+1].dts - pictures[i].dts)
		}
	}
	o.feed = cmaf.AppendFragment(o.feed, uint32(len(o.args.Spans)+1), cmaf.TrackID, uint64(pictures[0].dts+shift),
		samples)
	o.args.Spans = append(o.args.Spans, [2]int64{r.pts[from] + shift, r.pts[until-1] + shift})
	for i := from; i < until; i++ {
		o.want, o.mark = append(o.want, r.pts[i]+shift), append(o.mark, mark{r, i})
	}
	return latest + shift
}

// encode makes the pictures of segments that can't stay as they are. They are decoded in the order in which they are
// shown, as far ahead as in the recording.
func (rc *renditionCut) encode(ctx context.Context, segments []*segment) error {
	o := order{
		args: encode.PictureCut{
			Codec:     rc.format.codec,
			Timescale: rc.src.Timescale,
			Bitrate:   max(int(2*rc.src.Peak), 2_000_000),
		},
	}
	if err := rc.describe(&o.args); err != nil {
		return err
	}
	at, mixed := int64(rc.src.Timescale), false // some time in front, for what is decoded early
	for _, r := range segments {
		mixed = mixed || r.keep < r.kept
		for _, s := range r.spans() {
			pictures, err := rc.needed(ctx, r, s[0], s[1])
			if err != nil {
				return err
			}
			at = o.add(r, pictures, s[0], s[1], at)
		}
	}
	entry, pictures, err := rc.order(ctx, &o)
	if err != nil {
		return err
	}
	n, merged, err := rc.adapt(ctx, entry)
	if err != nil {
		return err
	}
	if !merged && mixed { // what is made and what stays don't go together
		for _, r := range segments {
			r.keep, r.kept = r.until, r.until
		}
		return rc.encode(ctx, segments)
	}
	if n == none {
		if n, err = rc.ownInit(ctx, entry); err != nil {
			return err
		}
	}
	for _, r := range segments {
		if err := rc.place(ctx, r, n, pictures[r]); err != nil {
			return err
		}
	}
	return nil
}

// order has pictures made; they come back with their places among those that each segment shows.
func (rc *renditionCut) order(ctx context.Context, o *order) (entry []byte, made map[*segment][]picture, err error) {
	var pictures []picture
	err = rc.Encoder.CutPicture(ctx, o.args, func(w io.Writer) error {
		for _, b := range [][]byte{rc.format.init, o.feed} {
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
		return nil, nil, err
	}
	if len(pictures) == 0 || len(pictures) > len(o.want) {
		return nil, nil, fmt.Errorf("the encoder gave %d pictures of %d", len(pictures), len(o.want))
	}
	made = map[*segment][]picture{}
	for _, p := range pictures {
		i, ok := slices.BinarySearch(o.want, p.pts)
		if !ok {
			return nil, nil, errors.New("the encoder gave a picture of no time that went in")
		}
		m := o.mark[i]
		p.i, p.pts = m.i, m.segment.pts[m.i]
		made[m.segment] = append(made[m.segment], p)
	}
	return entry, made, nil
}

// picture is one that was made, or one that stays.
type picture struct {
	i    int // its place among those that are shown
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
				out = append(out, picture{pts: at + int64(s.CompositionOffset), sync: s.Sync, data: s.Data})
				at += int64(s.Duration)
			}
		}
	}
}

// describe says what the encoder has to match.
func (rc *renditionCut) describe(a *encode.PictureCut) error {
	if a.Codec != frame.H264 {
		return nil
	}
	if rc.sets == nil {
		rc.sets = &sets{byInit: map[int]*mixed{}}
	}
	m, err := rc.sets.of(rc.format.n, rc.format.entry)
	if err != nil {
		return err
	}
	a.Set = m.id
	if info, err := h264.Info(m.sps[0]); err == nil {
		a.Profile, a.Level, a.Interlaced = info.ProfileIDC, info.LevelIDC, info.Interlaced
	}
	return nil
}
