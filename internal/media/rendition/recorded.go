package rendition

import (
	"context"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/delivered"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/rendition/ladder"
	"millrace/internal/media/timeline"
)

// Recording is a video that is stored.
type Recording struct {
	Media    id.Media // where its renditions are stored
	Timeline *timeline.Timeline
	// The media of a rendition that is stored.
	Open   func(t *timeline.Timeline, l *timeline.Rendition) delivered.Source
	Limits Limits
	Whole  bool // nothing is added any more; else there are no renditions
	Live   bool // it was live: what was offered then stays
	// Elsewhere makes what is not stored, where this node does not; nil: it is made here.
	Elsewhere Elsewhere
}

// Elsewhere has other nodes make what belongs to the renditions of a recording.
type Elsewhere interface {
	// Make gives an init segment or a segment; nil without an error: it is stored.
	Make(ctx context.Context, rendition string, r hls.Resource) ([]byte, error)
	// Ahead says that a stored segment is watched now, so that those behind it are made. It does not wait.
	Ahead(ctx context.Context, rendition string, r hls.Resource)
}

// Recorded is the renditions of a recording; it implements Set. They have the video's segments and times.
type Recorded struct {
	of        Recording
	store     store
	works     []*justintime.Work // largest first
	byName    map[string]*justintime.Work
	oversized bool // the video is larger than its asset's tier allows: renditions stand in for it
	withheld  bool // it was so from its first picture on
}

// NewRecorded returns the renditions of a recording. maker may be nil: then there are none.
func NewRecorded(maker *justintime.Maker, objects delivered.Objects, of Recording) *Recorded {
	s := &Recorded{of: of, store: store{maker, objects}, byName: map[string]*justintime.Work{}}
	video := of.Timeline.Rendition(timeline.MainVideo)
	if maker == nil || !of.Whole || video == nil || len(video.Inits) == 0 {
		return s
	}
	src, passes := Largest(video), true
	for _, in := range video.Inits {
		passes = passes && IsH264(in.Codec)
	}
	if src.Short() == 0 {
		return s
	}
	tier := of.Limits.tier()
	s.oversized = !src.Within(tier)
	s.withheld = s.oversized && (!of.Live || !sourceOf(video.Inits[0]).Within(tier))
	rungs := ladder.Below(src, of.Limits.quality(), tier)
	switch {
	case of.Live:
		all, _ := sources(video.Inits, tier)
		rungs = ladder.Live(all, of.Limits.quality(), tier)
	case s.oversized || !passes:
		rungs = ladder.Instead(src, of.Limits.quality(), tier)
	}
	src.Foreign = !passes
	for _, r := range ladder.Bound(rungs, src, video.Peak, video.Segment()) {
		name := maker.Rendition(r)
		w := s.work(r, objectkey.Rendition(of.Media, name))
		s.works, s.byName[name] = append(s.works, w), w
	}
	return s
}

// work is what makes a rendition whose storage keys begin with prefix.
func (rec *Recorded) work(r ladder.Rung, prefix string) *justintime.Work {
	video := rec.of.Timeline.Rendition(timeline.MainVideo)
	return &justintime.Work{
		Prefix: prefix, Rung: r, Timeline: rec.of.Timeline, Video: video,
		Source: rec.of.Open(rec.of.Timeline, video),
	}
}

// Renditions are the renditions as their playlists list them.
func (rec *Recorded) Renditions() []*timeline.Rendition {
	var all []*timeline.Rendition
	for _, w := range rec.works {
		l := &timeline.Rendition{RenditionInfo: timeline.RenditionInfo{
			ID:   rec.store.maker.Rendition(w.Rung),
			Kind: frame.Video, Timescale: w.Video.Timescale,
		}}
		for _, c := range w.Video.Chunks {
			l.Chunks = append(l.Chunks, timeline.Chunk{
				Rendition: l.ID, Time: c.Time, Duration: c.Duration, Gap: c.Gap,
				Independent: true,
			})
		}
		all = append(all, l)
	}
	return all
}

// Variants implements Set.
func (rec *Recorded) Variants(shared hls.Variant) Offer {
	o := Offer{Source: !rec.oversized}
	for _, w := range rec.works {
		v := variant(shared, w.Rung, rec.store.maker.Rendition(w.Rung), w.Video.Segment())
		if rec.oversized || w.Rung.Useful() {
			o.Below = append(o.Below, v)
		} else {
			o.Spare = append(o.Spare, v)
		}
	}
	return o
}

// Withholds implements Set.
func (rec *Recorded) Withholds() bool { return rec.withheld }

// Want implements Set.
func (rec *Recorded) Want(rendition string) bool { return rec.byName[rendition] != nil }

// Pixels is how large the picture of a rendition is; 0 when it is none of the set.
func (rec *Recorded) Pixels(rendition string) int {
	if w := rec.byName[rendition]; w != nil {
		return w.Rung.Width * w.Rung.Height
	}
	return 0
}

// Chunk implements Set.
func (rec *Recorded) Chunk(ctx context.Context, rendition string, r hls.Resource) (delivered.Body, error) {
	w := rec.byName[rendition]
	switch {
	case w == nil || r.Init > 0 || r.Part >= 0 || !r.Fits(false):
		return delivered.Body{}, missing()
	case rec.of.Elsewhere != nil:
		return rec.elsewhere(ctx, w, rendition, r)
	case r.Init == 0:
		return rec.store.init(ctx, w)
	}
	// listed while it was live, behind the end
	if tail := rec.of.Timeline.Tail; tail != nil && tail.Find(r.MSN) != nil {
		beyond := *w
		beyond.Timeline, beyond.Video = tail, tail.Rendition(w.Video.ID)
		beyond.Source = rec.of.Open(tail, beyond.Video)
		return rec.store.segment(ctx, &beyond, r.MSN)
	}
	b, err := rec.store.segment(ctx, w, r.MSN)
	if err == nil {
		rec.store.maker.Ahead(ctx, w, r.MSN)
	}
	return b, err
}

// elsewhere is what is stored, or what another node makes.
func (rec *Recorded) elsewhere(
	ctx context.Context, w *justintime.Work, rendition string, r hls.Resource,
) (delivered.Body, error) {
	key := w.InitKey()
	if r.Init < 0 {
		if rec.of.Timeline.Find(r.MSN) == nil {
			return delivered.Body{}, missing()
		}
		key = w.SegmentKey(r.MSN)
	}
	b, err := rec.store.objects.Open(ctx, key, 0, -1)
	absent := fault.Is(err, fault.NotFound)
	if r.Init < 0 && (absent || err == nil) {
		rec.store.maker.Lookups.Count(!absent)
	}
	if !absent {
		if err == nil && r.Init < 0 {
			rec.of.Elsewhere.Ahead(ctx, rendition, r)
		}
		return b, err
	}
	data, err := rec.of.Elsewhere.Make(ctx, rendition, r)
	if err != nil || data != nil {
		return delivered.Body{Data: data}, err
	}
	return rec.store.objects.Open(ctx, key, 0, -1)
}

// Ahead has what is behind a segment made that is watched at another node.
func (rec *Recorded) Ahead(ctx context.Context, rendition string, msn int64) {
	if w := rec.byName[rendition]; w != nil {
		rec.store.maker.Ahead(ctx, w, msn)
	}
}

// Filled is a rendition of a recording for a file: what of it nobody has watched is made while no viewer wants the
// processor. It implements delivered.Source.
type Filled struct {
	Width, Height int // pixels

	store store
	work  *justintime.Work
}

// Fill is the rendition that viewers get whose shorter side has at most so many pixels; where there is none, one that
// is stored below spare is made for the file alone. ok is false where none can be made.
func (rec *Recorded) Fill(short int, spare string) (f Filled, ok bool) {
	video := rec.of.Timeline.Rendition(timeline.MainVideo)
	if rec.store.maker == nil || video == nil || Largest(video).Short() == 0 {
		return f, false
	}
	src := Largest(video)
	f.store = rec.store
	for _, w := range rec.works {
		if min(w.Rung.Width, w.Rung.Height) == min(short, src.Short()) && f.work == nil {
			f.work = w
		}
	}
	if f.work == nil {
		r := ladder.At(src, rec.of.Limits.quality(), short)
		f.work = rec.work(r, spare+rec.store.maker.Rendition(r))
	}
	f.Width, f.Height = f.work.Rung.Width, f.work.Rung.Height
	return f, true
}

// Init implements delivered.Source.
func (f Filled) Init(ctx context.Context, _ int) ([]byte, error) {
	return delivered.Bytes(f.store.init(ctx, f.work))
}

// Segment implements delivered.Source.
func (f Filled) Segment(ctx context.Context, msn int64) (delivered.Body, error) {
	return f.store.background(ctx, f.work, msn)
}

// Make makes a segment that is not stored, and reports whether there was anything to do.
func (f Filled) Make(ctx context.Context, msn int64) (made bool, err error) {
	return f.store.maker.Fill(ctx, f.work, msn)
}
