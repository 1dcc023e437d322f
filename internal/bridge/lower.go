package bridge

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/cascade"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/ladder"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
	"millrace/internal/media/transcode"
	"millrace/internal/media/window"
)

// Policy is when the rungs of a broadcast are made.
type Policy string

// The policies.
const (
	RungsOnDemand Policy = "on_demand" // while somebody watches one
	RungsAlways   Policy = "always"
	RungsOff      Policy = "off"
)

// LiveRungs is how the rungs of broadcasts are made.
type LiveRungs struct {
	Encoder cascade.Encoder
	Maker   *transcode.Maker // names them, and makes what was not made while it was live
	Store   cascade.Store
	Read    func(ctx context.Context, key string) ([]byte, error) // a stored object
	Room    *cascade.Room                                         // what may wait for storage, of all broadcasts
	// Policy is that of an environment. It is asked as a broadcast begins.
	Policy func(ctx context.Context, e id.Environment) (Policy, error)
}

// lower is what a broadcast is offered in besides the picture as it comes.
type lower struct {
	asset   asset.Asset
	edge    *window.Edge
	maker   *transcode.Maker
	cascade *cascade.Cascade
	segment time.Duration // as it is cut

	mu       sync.Mutex
	snapshot *timeline.Timeline // of the video: whole segments
}

// rungPolicy is that of a stream's rungs.
func (l *Live) rungPolicy(ctx context.Context, s live.Stream) (Policy, error) {
	if l.opt.Rungs == nil {
		return RungsOff, nil
	}
	p, err := l.opt.Rungs.Policy(ctx, s.Environment)
	if err != nil {
		return RungsOff, fmt.Errorf("read policy of live rungs: %w", err)
	}
	return p, nil
}

// newLower returns nil where there are no rungs: test streams stay as they are, and a stream without a picture has none.
func (b *broadcast) newLower(policy Policy) *lower {
	o := b.opt.Rungs
	if policy == RungsOff || b.stream.Settings.Test || b.stream.Settings.AudioOnly {
		return nil
	}
	l := &lower{asset: b.asset, edge: b.edge, maker: o.Maker}
	l.segment, _ = cutOf(b.mode)
	l.cascade = cascade.New(cascade.Options{
		Edge: b.edge, Source: timeline.MainVideo, Timescale: packagerTimescale, Encoder: o.Encoder, Store: o.Store, Room: o.Room, Always: policy == RungsAlways,
		Init:  func(ctx context.Context, n int) ([]byte, error) { return b.readInit(ctx, n) },
		Rungs: l.made, Now: b.opt.Now, Logger: b.log,
	})
	return l
}

// lastRungs is how long what is in the encoders may take to be stored once a broadcast has ended.
const lastRungs = 5 * time.Second

// runLower is the goroutine that makes rungs while the broadcast runs; storing ends with it.
func (b *broadcast) runLower(storing context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(storing))
	defer cancel()
	defer context.AfterFunc(storing, func() { time.AfterFunc(lastRungs, cancel) })()
	defer func() {
		if r := recover(); r != nil {
			b.log.Error("rungs ended", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	if err := b.lower.cascade.Run(ctx); err != nil && ctx.Err() == nil {
		b.log.WarnContext(ctx, "rungs ended", "error", err)
	}
}

// packagerTimescale is that of every broadcast's video.
const packagerTimescale = 90000

// readInit reads an init segment of the video.
func (b *broadcast) readInit(ctx context.Context, n int) ([]byte, error) {
	at, err := b.edge.ReadInit(timeline.MainVideo, n)
	if err != nil || at.Data != nil {
		return at.Data, err
	}
	return b.opt.Rungs.Read(ctx, at.Object)
}

// sourcesOf are the pictures that a recording has had. shown says that players get them as they come.
func sourcesOf(inits []timeline.Init, tier int) (sources []ladder.Source, shown bool) {
	shown = true
	for _, in := range inits {
		s := ladder.Source{Width: in.Width, Height: in.Height, FrameRate: in.FrameRate, Foreign: !isH264(in.Codec)}
		sources, shown = append(sources, s), shown && s.Within(tier)
	}
	return sources, shown
}

// rungs are those of the broadcast so far, largest first. shown says that the picture is offered as it comes.
func (l *lower) rungs() (rungs []ladder.Rung, shown bool) {
	lanes, err := l.edge.Describe()
	if err != nil {
		return nil, true
	}
	for _, lane := range lanes {
		if lane.Kind != frame.Video {
			continue
		}
		tier := ladder.Tier(l.asset.Options.MaxResolution)
		sources, shown := sourcesOf(lane.Inits, tier)
		rungs = ladder.Live(sources, ladder.Quality(l.asset.Quality()), tier)
		return rungs, shown || len(rungs) == 0
	}
	return nil, true
}

// made are the rungs for the cascade.
func (l *lower) made() []cascade.Rung {
	rungs, _ := l.rungs()
	out := make([]cascade.Rung, 0, len(rungs))
	for _, r := range rungs {
		id := l.maker.Rendition(r)
		w := transcode.Work{Prefix: mediaPrefix(l.asset.Media) + "/" + id}
		out = append(out, cascade.Rung{Rung: r, ID: id, Key: w.SegmentKey})
		_ = l.edge.AddShadow(id, timeline.MainVideo) // there is one: it was described
	}
	return out
}

// find is the rung that a rendition is; it is wanted from now on.
func (l *lower) find(rendition string) (ladder.Rung, bool) {
	if l == nil || rendition == timeline.MainVideo || rendition == timeline.MainAudio {
		return ladder.Rung{}, false
	}
	rungs, _ := l.rungs()
	for _, r := range rungs {
		if l.maker.Rendition(r) != rendition {
			continue
		}
		if err := l.edge.AddShadow(rendition, timeline.MainVideo); err != nil {
			return r, false
		}
		l.cascade.Want(rendition)
		return r, true
	}
	return ladder.Rung{}, false
}

// until is what there is of the video, with a segment.
func (l *lower) until(msn int64) (*timeline.Timeline, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.snapshot == nil || msn >= l.snapshot.Next() {
		t, err := l.edge.Video(false)
		if err != nil {
			return nil, told(err)
		}
		l.snapshot = t
	}
	return l.snapshot, nil
}

// variants adds the rungs to what all variants share.
func (l *lower) variants(shared hls.Variant) (out []hls.Variant, shown bool) {
	if l == nil {
		return nil, true
	}
	rungs, shown := l.rungs()
	for _, r := range rungs {
		_ = l.edge.AddShadow(l.maker.Rendition(r), timeline.MainVideo) // there is one: it was described; other playlists report where this one stands
		out = append(out, variantOf(shared, r, l.maker.Rendition(r), l.segment.Seconds()))
	}
	return out, shown
}

// lowerChunk is an init segment, a segment or a part of a rung.
func (v *edgeView) lowerChunk(ctx context.Context, rung ladder.Rung, rendition string, r hls.Resource) (playback.Body, error) {
	at := window.Place{Due: true, MSN: -1, Part: -1}
	var err error
	switch {
	case r.Init > 0 || r.Init < 0 && r.Ext != "m4s":
		err = window.ErrUnknown
	case r.Init < 0 && r.Part >= 0:
		at, err = v.edge.ReadPart(ctx, rendition, r.MSN, r.Part)
	case r.Init < 0:
		at, err = v.edge.ReadSegment(ctx, rendition, r.MSN)
	}
	if err != nil || !at.Due {
		return v.place(ctx)(at, err)
	}
	t, err := v.lower.until(at.MSN)
	if err != nil {
		return playback.Body{}, err
	}
	w := &transcode.Work{
		Prefix: mediaPrefix(v.lower.asset.Media) + "/" + rendition, Rung: rung, Timeline: t, Lane: t.Lane(timeline.MainVideo), Source: above{v},
		Parts: func(msn int64) []int { return v.edge.PartEnds(timeline.MainVideo, msn) },
	}
	if at.Part >= 0 {
		return partOf(at.Part)(v.p.rung(ctx, w, hls.Resource{MSN: at.MSN, Init: -1, Part: -1, Ext: "m4s"}))
	}
	b, err := v.p.rung(ctx, w, r)
	if err == nil && r.Init < 0 && r.MSN+farBehind < v.edge.Newest(timeline.MainVideo) { // else it is made while it is live
		v.p.opt.Rungs.Ahead(ctx, w, r.MSN)
	}
	return b, err
}

// partOf is one movie fragment of a segment.
func partOf(k int) func(playback.Body, error) (playback.Body, error) {
	return func(b playback.Body, err error) (playback.Body, error) {
		data, err := whole(b, err)
		if err != nil {
			return playback.Body{}, err
		}
		fragments, err := cmaf.ParseFragments(data)
		if err != nil {
			return playback.Body{}, fmt.Errorf("read segment of a rung: %w", err)
		}
		if k < len(fragments) {
			end := fragments[k].Offset + fragments[k].Size
			return playback.Body{Data: data[fragments[k].Offset:end:end]}, nil
		}
		return playback.Body{}, told(window.ErrUnknown)
	}
}

// farBehind is how many segments behind the live edge a viewer watches the past.
const farBehind = 8

// above is the broadcast's video as rungs are made of it.
type above struct{ v *edgeView }

// Init implements transcode.Source.
func (a above) Init(ctx context.Context, n int) ([]byte, error) { return running(a).Init(ctx, n) }

// Segment implements transcode.Source.
func (a above) Segment(ctx context.Context, msn int64) ([]byte, error) {
	return whole(a.v.place(ctx)(a.v.edge.ReadSegment(ctx, timeline.MainVideo, msn)))
}
