package bridge

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/ladder"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
	"millrace/internal/media/transcode"
	"millrace/internal/storage/blob"
)

// addRungs lists the rungs of the ladder that are made of a recording's video when somebody watches them. They have the video's segments
// and times.
func (v *recorded) addRungs(row asset.Asset) {
	video := v.timeline.Lane(timeline.MainVideo)
	if v.p.opt.Rungs == nil || !v.whole || video == nil || len(video.Inits) == 0 {
		return
	}
	src, passes := sourceOf(video), true
	for _, in := range video.Inits {
		passes = passes && isH264(in.Codec)
	}
	if src.Short() == 0 {
		return
	}
	quality, tier := ladder.Quality(row.Quality()), ladder.Tier(row.Options.MaxResolution)
	v.oversized = !src.Within(tier)
	rungs := ladder.Below(src, quality, tier)
	switch {
	case row.LiveStream != "": // what was offered while it was live stays
		sources, _ := sourcesOf(video.Inits, tier)
		rungs = ladder.Live(sources, quality, tier)
	case v.oversized || !passes:
		rungs = ladder.Instead(src, quality, tier)
	}
	src.Foreign = !passes
	for _, r := range ladder.Bound(rungs, src, video.Peak, v.segmentSeconds()) {
		name := v.p.opt.Rungs.Rendition(r)
		l := &timeline.Lane{Rendition: timeline.Rendition{ID: name, Kind: frame.Video, Timescale: video.Timescale}}
		for _, c := range video.Chunks {
			l.Chunks = append(l.Chunks, timeline.Chunk{Rendition: name, Time: c.Time, Duration: c.Duration, Gap: c.Gap, Independent: true})
		}
		v.lanes = append(v.lanes, l)
		v.rungs = append(v.rungs, v.work(row, video, r, name))
		v.byRung[name] = v.rungs[len(v.rungs)-1]
	}
}

// sourceOf is what rungs of a video are made of, at its largest.
func sourceOf(video *timeline.Lane) ladder.Source {
	src := ladder.Source{}
	for _, in := range video.Inits {
		if in.Width*in.Height > src.Width*src.Height {
			src.Width, src.Height = in.Width, in.Height
		}
		src.FrameRate = max(src.FrameRate, in.FrameRate)
	}
	return src
}

// work is what makes a rung.
func (v *recorded) work(row asset.Asset, video *timeline.Lane, r ladder.Rung, name string) *transcode.Work {
	return &transcode.Work{
		Prefix: mediaPrefix(row.Media) + "/" + name, Rung: r, Timeline: v.timeline, Lane: video, Source: original{v, video},
	}
}

func isH264(codec string) bool { return len(codec) > 4 && (codec[:4] == "avc1" || codec[:4] == "avc3") }

// mediaPrefix is where the objects of a media set are.
func mediaPrefix(m id.Media) string { return "media/" + string(m) }

// variants adds what is listed of each rung to what all variants share.
func (v *recorded) variants(shared hls.Variant) []hls.Variant {
	var out []hls.Variant
	for _, w := range v.rungs {
		if v.oversized || w.Rung.Useful() {
			out = append(out, variantOf(shared, w.Rung, v.p.opt.Rungs.Rendition(w.Rung), v.segmentSeconds()))
		}
	}
	return out
}

// segmentSeconds is how long a segment is in the mean, in seconds.
func (v *recorded) segmentSeconds() float64 {
	return v.timeline.Duration().Seconds() / float64(max(len(v.timeline.Marks), 1))
}

// variantOf is how a rung is listed whose segments are so many seconds long.
func variantOf(shared hls.Variant, r ladder.Rung, name string, segment float64) hls.Variant {
	x := shared
	x.Bandwidth += int64(math.Ceil(r.Peak(segment)))
	x.AverageBandwidth = 0 // not known before it is encoded
	x.Width, x.Height, x.FrameRate = r.Width, r.Height, r.FrameRate
	x.Codecs = append([]string{r.Codec()}, shared.Codecs...)
	x.URI = hls.PlaylistURI(name)
	return x
}

// rung is an init segment or a segment of a rung. What is not stored yet is made now.
func (p *Playback) rung(ctx context.Context, w *transcode.Work, r hls.Resource) (playback.Body, error) {
	key, produce := w.SegmentKey(r.MSN), func() error { return p.opt.Rungs.Segment(ctx, w, r.MSN) }
	if r.Init >= 0 {
		key, produce = w.InitKey(), func() error { return p.opt.Rungs.Init(ctx, w) }
	}
	b, err := p.object(ctx, key, 0, -1)
	if err != nil && fault.KindOf(err) == fault.NotFound {
		p.opt.Rungs.Forget(w, r.MSN)
		if err = produce(); err == nil {
			b, err = p.object(ctx, key, 0, -1)
		}
	}
	return b, err
}

// original is a rendition as viewers get it.
type original struct {
	v *recorded
	l *timeline.Lane
}

// Init implements transcode.Source.
func (o original) Init(ctx context.Context, n int) ([]byte, error) {
	return whole(o.v.init(ctx, o.l, n))
}

// Segment implements transcode.Source.
func (o original) Segment(ctx context.Context, msn int64) ([]byte, error) {
	return whole(o.v.segment(ctx, o.l, msn))
}

// longest is the largest segment there is, in bytes.
const longest = 256 << 20

// whole reads a body to its end.
func whole(b playback.Body, err error) ([]byte, error) {
	if err != nil || b.Reader == nil {
		return b.Data, err
	}
	defer func() { _ = b.Reader.Close() }() // it was only read
	if b.Size > longest {
		return nil, fault.New(fault.Internal, "a segment has %d bytes", b.Size)
	}
	data := make([]byte, b.Size)
	if _, err := io.ReadFull(b.Reader, data); err != nil {
		return nil, fmt.Errorf("read segment: %w", err)
	}
	return data, nil
}

// Made keeps what rungs are made; it implements transcode.Store.
type Made struct {
	Blob   blob.Store
	Assets asset.Work
}

// Read is what was kept.
func (s Made) Read(ctx context.Context, key string) ([]byte, error) {
	r, err := s.Blob.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	return whole(playback.Body{Reader: r.ReadCloser, Size: r.Size}, nil)
}

// Has implements transcode.Store.
func (s Made) Has(ctx context.Context, key string) (bool, error) {
	_, err := s.Blob.Stat(ctx, key)
	if err != nil && fault.KindOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil, err
}

// PutNew implements transcode.Store. What comes too late for the purge of its asset is taken away again.
func (s Made) PutNew(ctx context.Context, key string, data []byte) (created bool, err error) {
	if created, err = s.Blob.PutNew(ctx, key, data); !created || err != nil {
		return created, err
	}
	m, _, _ := strings.Cut(strings.TrimPrefix(key, mediaPrefix("")), "/")
	users, err := s.Assets.Users(ctx, id.Media(m))
	if err != nil || len(users) > 0 {
		return true, err
	}
	if err := s.Blob.Delete(ctx, key); err != nil {
		return true, err
	}
	return false, fault.New(fault.NotFound, "the asset was deleted")
}
