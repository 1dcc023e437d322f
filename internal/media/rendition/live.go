package rendition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/delivered"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/metering"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/rendition/ladder"
	"millrace/internal/media/rendition/liveladder"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
	"millrace/internal/stalecache"
)

// Makers are what renditions are made with while they are live, for all broadcasts.
type Makers struct {
	Maker   *justintime.Maker // names and keeps them, and makes what was not made while it was live
	Encoder liveladder.Encoder
	Objects delivered.Objects
	Waiting *liveladder.ByteBudget // what may wait for storage
}

// LiveOptions are what the renditions of a broadcast are made with and of.
type LiveOptions struct {
	Media     id.Media // where they are stored
	Edge      *window.Edge
	Timescale uint32 // of the video: ticks per second
	Limits    Limits
	Always    bool // they are made whether somebody watches or not

	Makers
	// AwaitStored waits until a segment of the video is stored and no other node can store another one in its place.
	AwaitStored func(ctx context.Context, msn int64) error
	Now         func() time.Time
	Logger      *slog.Logger
}

// Live is the renditions of a broadcast; it implements Set.
type Live struct {
	opt    LiveOptions
	store  store
	ladder *liveladder.Ladder
	// Segments of which parts were asked for after they should have been there.
	late  *stalecache.Cache[lateKey, []byte]
	first atomic.Pointer[ladder.Source] // the picture that the broadcast began with; nil: not known yet

	mu     sync.Mutex
	inits  int // of the video, when the offer was found out
	known  offer
	bound  []ladder.Rung
	tracks map[string]frame.Config // that live encoders have announced, by rendition
	learnt chan struct{}           // closed with the next one
}

// offer is what a broadcast is offered in.
type offer struct {
	rungs   []ladder.Rung // largest first
	names   []string      // of the renditions
	source  ladder.Source // that they are bounded by
	peak    float64       // of the video, bits per second
	segment float64       // of the video, where they are shortest, seconds
	shown   bool          // the video is offered as it comes
	known   bool          // by what it has taken so far one can tell what it takes
}

type lateKey struct {
	rendition string
	msn       int64
}

const (
	// maxLate is how many late segments of a broadcast's renditions are in memory: viewers ask for the parts of the
	// same few.
	maxLate = 6
	// around is how many segments on each side of one there has to be known to make it: those in front that it may need
	// to be decoded, and those behind that are made with it.
	around = 12
	// storedSoon is how long a segment waits for its source to be stored.
	storedSoon = 10 * time.Second
	// farBehind is how many segments behind the live edge a viewer watches the past.
	farBehind = 8
	// tellingTime is how much of the video has to be measured before its bit rate says which renditions are of no use:
	// who comes while one is left out does without it for as long as they watch, and a broadcast may begin with a
	// picture that stands.
	tellingTime = 30 * time.Second
	// announcedSoon is how long a live encoder that has been asked for may take to announce its parameters; it takes a
	// tenth of that where there is room.
	announcedSoon = time.Second
	// lastSegments is how long what is in the encoders may take to be stored once a broadcast has ended.
	lastSegments = 5 * time.Second
)

// NewLive returns the renditions of a broadcast; nothing is made while it is live before Run is called.
func NewLive(o LiveOptions) *Live {
	l := &Live{
		opt: o, store: store{o.Maker, o.Objects}, tracks: map[string]frame.Config{}, learnt: make(chan struct{}),
		late: stalecache.New[lateKey, []byte](maxLate, 0),
	}
	o.Edge.Derived().Making(true) // before anybody waits for what a process before this one has left
	l.ladder = liveladder.New(liveladder.Options{
		Edge: o.Edge, Output: o.Edge.Derived(), Source: timeline.MainVideo, Timescale: o.Timescale, Encoder: o.Encoder,
		Store:       o.Maker,
		AwaitStored: o.AwaitStored, Waiting: o.Waiting, Always: o.Always, Init: l.source().Init, Rungs: l.made,
		Now: o.Now, Logger: o.Logger,
		Parameters: func(r liveladder.Rung, avcC []byte) {
			if err := l.learn(r.ID, avcC); err != nil {
				o.Logger.Warn("parameters of a rendition can't be read", "rendition", r.ID, "error", err)
			}
		},
	})
	return l
}

// source is the video as viewers get it.
func (l *Live) source() delivered.Source { return l.opt.Edge.Source(timeline.MainVideo, l.opt.Objects) }

// Run makes renditions while the broadcast runs, until End is called and all is stored; what is left then has five
// seconds after storing ends.
func (l *Live) Run(storing context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(storing))
	defer cancel()
	defer context.AfterFunc(storing, func() { time.AfterFunc(lastSegments, cancel) })()
	defer l.opt.Edge.Derived().Making(false)
	err := fault.Guard(func() error { return l.ladder.Run(ctx) })
	if _, panicked := errors.AsType[*fault.PanicError](err); panicked {
		l.opt.Logger.ErrorContext(ctx, "live renditions ended", "error", err, "stack", fault.Trace(err))
	} else if err != nil && ctx.Err() == nil {
		l.opt.Logger.WarnContext(ctx, "live renditions ended", "error", err)
	}
}

// End says that the broadcast has ended.
func (l *Live) End() { l.ladder.End() }

// offer is what the broadcast is offered in so far. It is found out again when the picture changes; renditions take
// more when the picture does.
func (l *Live) offer() offer {
	n := l.opt.Edge.Inits(timeline.MainVideo)
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
	rate := l.opt.Edge.Rate(timeline.MainVideo)
	peak, segment := rate.Peak(l.opt.Timescale), rate.Segment()
	if l.bound == nil || peak != l.known.peak || segment != l.known.segment {
		l.known.peak, l.known.segment = peak, segment
		l.bound = ladder.Bound(l.known.rungs, l.known.source, peak, segment)
	}
	o := l.known
	o.rungs, o.known = l.bound, rate.Ticks() >= int64(tellingTime/time.Second)*int64(l.opt.Timescale)
	return o
}

func (l *Live) findOut() (o offer, ok bool) {
	edge, err := l.opt.Edge.Describe()
	if err != nil {
		return o, false
	}
	i := slices.IndexFunc(edge, func(r window.Rendition) bool { return r.ID == timeline.MainVideo })
	if i < 0 {
		return o, false
	}
	all, shown := sources(edge[i].Inits, l.opt.Limits.tier())
	o.rungs = ladder.Live(all, l.opt.Limits.quality(), l.opt.Limits.tier())
	o.shown = shown || len(o.rungs) == 0
	for _, src := range all {
		o.source.Foreign = o.source.Foreign || src.Foreign
	}
	for _, r := range o.rungs {
		o.names = append(o.names, l.opt.Maker.Rendition(r))
	}
	return o, true
}

// made are the renditions for the live ladder.
func (l *Live) made() []liveladder.Rung {
	o := l.offer()
	out := make([]liveladder.Rung, 0, len(o.rungs))
	for i, r := range o.rungs {
		w := justintime.Work{Prefix: objectkey.Rendition(l.opt.Media, o.names[i])}
		out = append(out, liveladder.Rung{Rung: r, ID: o.names[i], Key: w.SegmentKey, HeadKey: w.HeadKey})
		_ = l.opt.Edge.Derived().Add(o.names[i], timeline.MainVideo) // there is a video: it was described
	}
	return out
}

// Want implements Set.
func (l *Live) Want(rendition string) bool {
	if rendition == timeline.MainVideo || rendition == timeline.MainAudio {
		return false
	}
	if _, ok := l.rung(rendition); !ok || l.opt.Edge.Derived().Add(rendition, timeline.MainVideo) != nil {
		return false
	}
	l.ladder.Want(rendition)
	return true
}

// rung is how a rendition is encoded; false when it is not offered.
func (l *Live) rung(rendition string) (ladder.Rung, bool) {
	o := l.offer()
	if i := slices.Index(o.names, rendition); i >= 0 {
		return o.rungs[i], true
	}
	return ladder.Rung{}, false
}

// learn notes what a live encoder announces of a rendition.
func (l *Live) learn(rendition string, avcC []byte) error {
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

// track is what a live encoder announces of a rendition; false when none does.
func (l *Live) track(ctx context.Context, rendition string) (frame.Config, bool) {
	enough := time.NewTimer(announcedSoon)
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

// Variants implements Set.
func (l *Live) Variants(shared hls.Variant) Offer {
	o := l.offer()
	out := Offer{Source: o.shown}
	for i, r := range o.rungs {
		v := variant(shared, r, o.names[i], o.segment)
		if o.known && o.shown && !r.Useful() {
			out.Spare = append(out.Spare, v)
			continue
		}
		// There is a video: it was described. Other playlists report where this one stands.
		_ = l.opt.Edge.Derived().Add(o.names[i], timeline.MainVideo)
		out.Below = append(out.Below, v)
	}
	return out
}

// Withholds implements Set.
func (l *Live) Withholds() bool {
	first := l.first.Load()
	if first == nil {
		in, ok := l.opt.Edge.FirstInit(timeline.MainVideo)
		if !ok {
			return false
		}
		s := sourceOf(in)
		first = &s
		l.first.Store(first)
	}
	return !first.Within(l.opt.Limits.tier())
}

// Chunk implements Set.
func (l *Live) Chunk(ctx context.Context, rendition string, r hls.Resource) (b delivered.Body, err error) {
	rung, ok := l.rung(rendition)
	if !ok {
		return b, missing()
	}
	at, err := l.locate(ctx, rendition, r)
	if err == nil && at.NotEncoded {
		b, err = l.make(ctx, rung, rendition, r, at)
	} else {
		b, err = at.Open(ctx, l.opt.Objects, err)
	}
	b.Init, b.Start = at.Init, at.Start
	b.Watched = metering.Delivery{Length: at.Length, Pixels: rung.Width * rung.Height}
	return b, err
}

// locate finds an init segment, a segment or a part; what is due has to be made.
func (l *Live) locate(ctx context.Context, rendition string, r hls.Resource) (window.Location, error) {
	switch {
	case r.Init > 0 || !r.Fits(false):
		return window.Location{}, window.ErrUnknown
	case r.Init < 0 && r.Part >= 0:
		return l.opt.Edge.ReadPart(ctx, rendition, r.MSN, r.Part)
	case r.Init < 0:
		return l.opt.Edge.ReadSegment(ctx, rendition, r.MSN)
	}
	return window.Location{NotEncoded: true, MSN: -1, Part: -1}, nil
}

// make makes an init segment, a segment or a part just in time.
func (l *Live) make(
	ctx context.Context, rung ladder.Rung, rendition string, r hls.Resource, at window.Location,
) (delivered.Body, error) {
	w, err := l.work(rung, rendition, at.MSN)
	switch {
	case err != nil:
		return delivered.Body{}, window.Fault(err)
	case r.Init == 0:
		return l.store.init(ctx, w)
	case at.Part >= 0:
		return l.part(ctx, w, rendition, at)
	}
	b, err := l.store.segment(ctx, w, r.MSN)
	if err == nil && r.MSN+farBehind < l.opt.Edge.Newest(timeline.MainVideo) { // else it is made while it is live
		l.opt.Maker.Ahead(ctx, w, r.MSN)
	}
	return b, err
}

// work is what makes the segments around msn just in time.
func (l *Live) work(rung ladder.Rung, rendition string, msn int64) (*justintime.Work, error) {
	t, err := l.opt.Edge.VideoAround(msn, around)
	if err != nil {
		return nil, err
	}
	ends, alike := l.opt.Edge.Derived().PartEnds(rendition, msn) // they may be forgotten before it is made
	return &justintime.Work{
		Prefix: objectkey.Rendition(l.opt.Media, rendition), Rung: rung, Timeline: t,
		Video: t.Rendition(timeline.MainVideo), Source: l.source(),
		Parameters: func(ctx context.Context) (frame.Config, bool) { return l.track(ctx, rendition) },
		Parts: func(other int64) ([]int, bool) {
			if other == msn {
				return ends, alike
			}
			return l.opt.Edge.Derived().PartEnds(rendition, other)
		},
		Head: func(msn int64) []byte { return l.opt.Edge.Derived().Head(rendition, msn) },
		Dependent: func(msn int64, part int) bool {
			return l.opt.Edge.Derived().Dependent(rendition, msn, part)
		},
		AwaitStored: func(ctx context.Context, msn int64) error {
			enough, cancel := context.WithTimeout(ctx, storedSoon)
			defer cancel()
			err := l.opt.AwaitStored(enough, msn)
			if err != nil && enough.Err() != nil {
				err = fault.Wrap(fault.Unavailable, err, "the segment is not stored yet: ask for it again")
			}
			return err
		},
	}, nil
}

// part is a part of a segment that was not made while it was live: one movie fragment of it.
func (l *Live) part(
	ctx context.Context, w *justintime.Work, rendition string, at window.Location,
) (delivered.Body, error) {
	data, err := l.late.Get(ctx, lateKey{rendition, at.MSN}, l.opt.Now(), func(ctx context.Context) ([]byte, error) {
		return delivered.Bytes(l.store.segment(ctx, w, at.MSN))
	})
	if err != nil {
		return delivered.Body{}, err
	}
	fragments, err := cmaf.ParseFragments(data)
	if err != nil {
		return delivered.Body{}, fmt.Errorf("read segment of a rendition: %w", err)
	}
	if at.Part >= len(fragments) {
		return delivered.Body{}, missing()
	}
	end := fragments[at.Part].Offset + fragments[at.Part].Size
	return delivered.Body{Data: data[fragments[at.Part].Offset:end:end]}, nil
}
