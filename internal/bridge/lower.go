package bridge

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/cascade"
	"millrace/internal/media/codec/h264"
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
	Maker   *transcode.Maker                                      // names and keeps them, and makes what was not made while it was live
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
	settled func(ctx context.Context, msn int64) error
	segment time.Duration // as it is cut

	late *shelf[lateKey, []byte] // segments of which parts were asked for after they should have been there

	mu     sync.Mutex
	inits  int // of the video, when rungs were found out
	known  offer
	peak   float64 // of the video, by which the rungs are bounded
	bound  []ladder.Rung
	tracks map[string]frame.Config // that live encoders have said, by rendition
	learnt chan struct{}           // closed with the next one
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

// offer is what a broadcast is offered in.
type offer struct {
	rungs  []ladder.Rung // largest first
	names  []string      // of the renditions
	source ladder.Source // that they are bounded by
	shown  bool          // the picture is offered as it comes
}

type lateKey struct {
	rendition string
	msn       int64
}

// lates is how many late segments of a broadcast's rungs are in memory: viewers ask for the parts of the same few.
const lates = 6

// newLower returns nil where there are no rungs: test streams stay as they are, and a stream without a picture has none.
func (b *broadcast) newLower(policy Policy) *lower {
	o := b.opt.Rungs
	if policy == RungsOff || b.stream.Settings.Test || b.stream.Settings.AudioOnly {
		return nil
	}
	l := &lower{
		asset: b.asset, edge: b.edge, maker: o.Maker, settled: b.settled, tracks: map[string]frame.Config{}, learnt: make(chan struct{}),
		late: newShelf[lateKey, []byte](lates, 0),
	}
	l.segment, _ = cutOf(b.mode)
	l.cascade = cascade.New(cascade.Options{
		Edge: b.edge, Source: timeline.MainVideo, Timescale: packagerTimescale, Encoder: o.Encoder, Store: o.Maker,
		Settled: b.settled, Room: o.Room, Always: policy == RungsAlways,
		Init:  func(ctx context.Context, n int) ([]byte, error) { return b.readInit(ctx, n) },
		Rungs: l.made, Now: b.opt.Now, Logger: b.log,
		Parameters: func(r cascade.Rung, avcC []byte) {
			if err := l.learn(r.ID, avcC); err != nil {
				b.log.Warn("parameters of a rung can't be read", "rendition", r.ID, "error", err)
			}
		},
	})
	return l
}

// settled waits until a segment of the video is stored, and makes sure that the broadcast is still this node's: another one's has other
// media under the same number, which rungs must not be mixed with.
func (b *broadcast) settled(ctx context.Context, msn int64) error {
	if err := b.edge.Stored(ctx, timeline.MainVideo, msn); err != nil {
		return told(err)
	}
	select {
	case <-b.stored:
		if b.edge.Ended() && !b.ledger.ended() { // nothing is added by anybody
			return nil
		}
	default:
	}
	mine, err := b.ledger.hold(ctx)
	if err == nil && !mine {
		return fault.New(fault.Conflict, "the broadcast is not this node's any more")
	}
	return err
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
			b.log.ErrorContext(ctx, "rungs ended", "panic", r, "stack", string(debug.Stack()))
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

// offer is what the broadcast is offered in so far. It is found out again when the picture changes; rungs take more when the picture does.
func (l *lower) offer() offer {
	n := l.edge.Inits(timeline.MainVideo)
	l.mu.Lock()
	defer l.mu.Unlock()
	if n == 0 {
		return offer{shown: true}
	}
	if n != l.inits {
		if o, ok := l.findOut(); ok {
			l.inits, l.known, l.bound = n, o, nil
		}
	}
	if peak := l.edge.Peak(timeline.MainVideo); l.bound == nil || peak != l.peak {
		l.peak, l.bound = peak, ladder.Bound(l.known.rungs, l.known.source, peak, l.segment.Seconds())
	}
	o := l.known
	o.rungs = l.bound
	return o
}

func (l *lower) findOut() (o offer, ok bool) {
	lanes, err := l.edge.Describe()
	if err != nil {
		return o, false
	}
	for _, lane := range lanes {
		if lane.ID != timeline.MainVideo {
			continue
		}
		tier := ladder.Tier(l.asset.Options.MaxResolution)
		sources, shown := sourcesOf(lane.Inits, tier)
		o.rungs = ladder.Live(sources, ladder.Quality(l.asset.Quality()), tier)
		o.shown = shown || len(o.rungs) == 0
		for _, src := range sources {
			o.source.Foreign = o.source.Foreign || src.Foreign
		}
		for _, r := range o.rungs {
			o.names = append(o.names, l.maker.Rendition(r))
		}
		return o, true
	}
	return o, false
}

// made are the rungs for the cascade.
func (l *lower) made() []cascade.Rung {
	o := l.offer()
	out := make([]cascade.Rung, 0, len(o.rungs))
	for i, r := range o.rungs {
		w := transcode.Work{Prefix: mediaPrefix(l.asset.Media) + "/" + o.names[i]}
		out = append(out, cascade.Rung{Rung: r, ID: o.names[i], Key: w.SegmentKey, HeadKey: w.HeadKey})
		_ = l.edge.AddShadow(o.names[i], timeline.MainVideo) // there is one: it was described
	}
	return out
}

// find is the rung that a rendition is; it is wanted from now on.
func (l *lower) find(rendition string) (ladder.Rung, bool) {
	if l == nil || rendition == timeline.MainVideo || rendition == timeline.MainAudio {
		return ladder.Rung{}, false
	}
	o := l.offer()
	i := slices.Index(o.names, rendition)
	if i < 0 {
		return ladder.Rung{}, false
	}
	if err := l.edge.AddShadow(rendition, timeline.MainVideo); err != nil {
		return o.rungs[i], false
	}
	l.cascade.Want(rendition)
	return o.rungs[i], true
}

// learn notes what a live encoder says of a rung.
func (l *lower) learn(rendition string, avcC []byte) error {
	sps, pps, _, err := h264.ParseAVCC(avcC)
	if err != nil {
		return err
	}
	if len(sps) != 1 || len(pps) != 1 {
		return fmt.Errorf("%d SPS and %d PPS", len(sps), len(pps))
	}
	c, err := h264.TrackConfig(bytes.Clone(sps[0]), bytes.Clone(pps[0]))
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.tracks[rendition]; !known {
		l.tracks[rendition] = c
		close(l.learnt)
		l.learnt = make(chan struct{})
	}
	return nil
}

// saidSoon is how long a live encoder that has been asked for may take to say its parameters; it takes a tenth of that where there is room.
const saidSoon = time.Second

// track is what a live encoder says of a rung; false when none does.
func (l *lower) track(ctx context.Context, rendition string) (frame.Config, bool) {
	enough := time.NewTimer(saidSoon)
	defer enough.Stop()
	for {
		l.mu.Lock()
		c, ok := l.tracks[rendition]
		learnt := l.learnt
		l.mu.Unlock()
		if ok {
			return c, true
		}
		select {
		case <-learnt:
		case <-enough.C:
			return frame.Config{}, false
		case <-ctx.Done():
			return frame.Config{}, false
		}
	}
}

// variants adds the rungs to what all variants share.
func (l *lower) variants(shared hls.Variant) (out []hls.Variant, shown bool) {
	if l == nil {
		return nil, true
	}
	o := l.offer()
	for i, r := range o.rungs {
		_ = l.edge.AddShadow(o.names[i], timeline.MainVideo) // there is one: it was described; other playlists report where this one stands
		out = append(out, variantOf(shared, r, o.names[i], l.segment.Seconds()))
	}
	return out, o.shown
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
	t, err := v.edge.VideoAround(at.MSN, around)
	if err != nil {
		return playback.Body{}, told(err)
	}
	parts := v.edge.PartEnds(rendition, at.MSN) // they may be forgotten before it is made
	w := &transcode.Work{
		Prefix: mediaPrefix(v.lower.asset.Media) + "/" + rendition, Rung: rung, Timeline: t, Lane: t.Lane(timeline.MainVideo), Source: above{v},
		Parameters: func(ctx context.Context) (frame.Config, bool) { return v.lower.track(ctx, rendition) },
		Parts: func(msn int64) []int {
			if msn == at.MSN {
				return parts
			}
			return v.edge.PartEnds(rendition, msn)
		},
		Head: func(msn int64) []byte { return v.edge.Head(rendition, msn) },
		Settled: func(ctx context.Context, msn int64) error {
			enough, cancel := context.WithTimeout(ctx, settling)
			defer cancel()
			failed := v.lower.settled(enough, msn)
			if failed != nil && enough.Err() != nil {
				failed = fault.Wrap(fault.Unavailable, failed, "the segment is not stored yet: ask for it again")
			}
			return failed
		},
	}
	if at.Part >= 0 {
		return partOf(at.Part)(v.lower.late.get(ctx, lateKey{rendition, at.MSN}, v.p.opt.Now(), func(ctx context.Context) ([]byte, error) {
			return whole(v.p.rung(ctx, w, hls.Resource{MSN: at.MSN, Init: -1, Part: -1, Ext: "m4s"}))
		}))
	}
	b, err := v.p.rung(ctx, w, r)
	if err == nil && r.Init < 0 && r.MSN+farBehind < v.edge.Newest(timeline.MainVideo) { // else it is made while it is live
		v.p.opt.Rungs.Ahead(ctx, w, r.MSN)
	}
	return b, err
}

// partOf is one movie fragment of a segment.
func partOf(k int) func(segment []byte, err error) (playback.Body, error) {
	return func(data []byte, err error) (playback.Body, error) {
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

// around is how many segments on each side of one there has to be known to make it: those in front that it may need to be decoded, and those
// behind that are made with it.
const around = 12

// settling is how long a segment of a rung waits for its source to be stored.
const settling = 10 * time.Second

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
