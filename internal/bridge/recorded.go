package bridge

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
	"millrace/internal/media/transcode"
)

// recorded is an asset as it is watched from storage: its timeline with the ready tracks beside it.
type recorded struct {
	p        *Playback
	media    string
	revision int64 // of the asset's row
	read     time.Time
	timeline *timeline.Timeline
	whole    bool // nothing is added any more
	lanes    []*timeline.Lane
	tracks   map[string]asset.Track // by rendition
	texts    map[string]asset.Track // by track ID: text tracks
	spans    []float64
	target   int // EXT-X-TARGETDURATION

	files     asset.Static
	thumbnail *float64 // the asset's thumbnail_time, in seconds; nil: not chosen

	rungs     []*transcode.Work // largest first
	byRung    map[string]*transcode.Work
	oversized bool // the video is larger than its asset's tier allows: rungs stand in for it

	mu    sync.Mutex
	lists map[string]*list
}

type list struct{ plain, packed []byte }

// present joins a timeline and the asset's ready tracks: alternate audio and text are cut where the video is cut.
func (p *Playback) present(ctx context.Context, row asset.Asset, t *timeline.Timeline) (*recorded, error) {
	v := &recorded{
		p: p, media: string(row.Media), revision: row.Revision, read: p.opt.Now(), timeline: t, whole: row.Index != "" || row.LiveStream != "" && !row.IsLive, lanes: append([]*timeline.Lane(nil), t.Lanes...),
		tracks: map[string]asset.Track{}, texts: map[string]asset.Track{}, spans: t.Spans(), lists: map[string]*list{},
		byRung: map[string]*transcode.Work{}, thumbnail: row.ThumbnailTime, files: row.Static,
	}
	v.addRungs(row)
	for _, tr := range row.Tracks {
		if tr.Status != asset.TrackReady {
			continue
		}
		v.tracks[tr.Rendition] = tr
		switch {
		case tr.Type == asset.TextTrack:
			v.texts[string(tr.ID)] = tr
			v.lanes = append(v.lanes, v.textLane(tr))
		case tr.Type == asset.AudioTrack && tr.Object != "":
			l, err := p.alternate(ctx, tr, v)
			if fault.KindOf(err) == fault.NotFound && err != nil { // deleted a moment ago
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("open alternate audio %s: %w", tr.ID, err)
			}
			v.lanes = append(v.lanes, l)
		}
	}
	v.target = t.Target
	for _, l := range v.lanes { // the same in every rendition, RFC 8216bis section 6.2.4
		for i := range l.Chunks {
			v.target = max(v.target, int(math.Round(l.Seconds(i))))
		}
	}
	return v, nil
}

func (v *recorded) textLane(tr asset.Track) *timeline.Lane {
	l := &timeline.Lane{Rendition: timeline.Rendition{ID: string(tr.ID), Kind: frame.Text, Timescale: 1000000}}
	for i := range len(v.spans) - 1 {
		from, to := int64(math.Round(v.spans[i]*1e6)), int64(math.Round(v.spans[i+1]*1e6))
		l.Chunks = append(l.Chunks, timeline.Chunk{Rendition: l.ID, Time: from, Duration: to - from})
	}
	return l
}

func (p *Playback) alternate(ctx context.Context, tr asset.Track, v *recorded) (*timeline.Lane, error) {
	f, err := p.opt.Library.File(ctx, tr.Object)
	if err != nil {
		return nil, err
	}
	for _, t := range f.Tracks {
		if t.Kind == frame.Audio {
			return ondemand.Follow(t, tr.Object, string(tr.ID), v.spans, v.timeline.ZeroTime()), nil
		}
	}
	return nil, ondemand.ErrUnknown
}

func (v *recorded) Media() string { return v.media }

func (v *recorded) Private() bool { return false }

// Multivariant implements playback.Presentation.
func (v *recorded) Multivariant(_ context.Context, c playback.Clip) (*hls.Multivariant, error) {
	if len(v.timeline.Marks) == 0 {
		return nil, fault.New(fault.NotReady, "the asset is being prepared: ask again in a moment")
	}
	if _, _, err := v.stretch(c); err != nil {
		return nil, err
	}
	m := &hls.Multivariant{Independent: v.whole && v.timeline.Independent()}
	variant := hls.Variant{}
	var audioPeak, audioMean float64
	video := v.timeline.Lane(timeline.MainVideo)
	audios := 0
	for _, l := range v.lanes {
		if l.Kind == frame.Audio {
			audios++
			audioPeak, audioMean = max(audioPeak, l.Peak), max(audioMean, l.Average())
		}
	}
	for _, l := range v.lanes {
		switch l.Kind {
		case frame.Audio:
			addCodecs(&variant, l.Inits)
			if video == nil && audios == 1 {
				variant.URI = hls.PlaylistURI(l.ID)
				continue
			}
			variant.Audio = audioGroup
			m.Renditions = append(m.Renditions, v.audioRendition(l))
		case frame.Text:
			variant.Subtitles = textGroup
			m.Renditions = append(m.Renditions, v.textRendition(l))
		case frame.Video:
		}
	}
	variant.Bandwidth, variant.AverageBandwidth = int64(math.Ceil(audioPeak)), int64(math.Ceil(audioMean))
	m.Variants = v.variants(variant)
	if video != nil {
		addVideo(&variant, video)
	}
	if variant.URI == "" {
		variant.URI = hls.PlaylistURI(v.lanes[0].ID)
	}
	if !v.oversized {
		m.Variants = append([]hls.Variant{variant}, m.Variants...)
	}
	return m, nil
}

func addVideo(variant *hls.Variant, l *timeline.Lane) {
	variant.URI = hls.PlaylistURI(l.ID)
	variant.Bandwidth += int64(math.Ceil(l.Peak))
	variant.AverageBandwidth += int64(math.Ceil(l.Average()))
	for _, in := range l.Inits {
		if in.Width*in.Height > variant.Width*variant.Height {
			variant.Width, variant.Height = in.Width, in.Height
		}
		variant.FrameRate = max(variant.FrameRate, in.FrameRate)
	}
	sound := variant.Codecs
	variant.Codecs = nil
	addCodecs(variant, l.Inits)
	variant.Codecs = append(variant.Codecs, sound...)
}

// addCodecs names every codec that a player of a rendition meets once: it must be able to play all of them.
func addCodecs(variant *hls.Variant, inits []timeline.Init) {
	for _, in := range inits {
		if !slices.Contains(variant.Codecs, in.Codec) {
			variant.Codecs = append(variant.Codecs, in.Codec)
		}
	}
}

func (v *recorded) audioRendition(l *timeline.Lane) hls.Rendition {
	tr := v.tracks[l.ID]
	main := l.ID == timeline.MainAudio
	r := hls.Rendition{
		Type: "AUDIO", GroupID: audioGroup, Name: tr.Name, Language: language(tr), Default: main, Autoselect: true, URI: hls.PlaylistURI(l.ID),
	}
	if r.Name == "" {
		r.Name = "Default"
	}
	if n := len(l.Inits); n > 0 {
		r.Channels = l.Inits[n-1].Channels
	}
	return r
}

func (v *recorded) textRendition(l *timeline.Lane) hls.Rendition {
	tr := v.texts[l.ID]
	r := hls.Rendition{
		Type: "SUBTITLES", GroupID: textGroup, Name: tr.Name, Language: language(tr), Autoselect: true, URI: hls.PlaylistURI(l.ID),
	}
	if tr.ClosedCaptions {
		r.Characteristics = "public.accessibility.transcribes-spoken-dialog,public.accessibility.describes-music-and-sound"
	}
	return r
}

// language leaves out what says nothing.
func language(tr asset.Track) string {
	if tr.LanguageCode == "und" {
		return ""
	}
	return tr.LanguageCode
}

func (v *recorded) lane(rendition string) *timeline.Lane {
	for _, l := range v.lanes {
		if l.ID == rendition {
			return l
		}
	}
	return nil
}

// Playlist implements playback.Presentation; nothing is ever waited for here.
func (v *recorded) Playlist(_ context.Context, rendition string, r playback.Reload, compressed bool) (playback.Text, error) {
	l := v.lane(rendition)
	if l == nil {
		return playback.Text{}, fault.New(fault.NotFound, "there is no such rendition")
	}
	if len(v.timeline.Marks) == 0 {
		return playback.Text{}, fault.New(fault.NotReady, "the asset is being prepared: ask again in a moment")
	}
	text, err := v.list(l, r.Clip)
	if err != nil {
		return playback.Text{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	age := 1
	if v.whole {
		age = max(v.timeline.Target-1, 1)
	}
	if !compressed {
		return playback.Text{Data: text.plain, MaxAge: age}, nil
	}
	if text.packed == nil {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(text.plain) // a buffer takes everything
		_ = w.Close()
		text.packed = b.Bytes()
	}
	return playback.Text{Data: text.packed, MaxAge: age}, nil
}

// list is a rendition's playlist; the whole one is kept.
func (v *recorded) list(l *timeline.Lane, c playback.Clip) (*list, error) {
	if c != (playback.Clip{}) {
		from, to, err := v.stretch(c)
		if err != nil {
			return nil, err
		}
		return &list{plain: v.render(l, from, to)}, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	text := v.lists[l.ID]
	if text == nil {
		text = &list{plain: v.render(l, 0, len(l.Chunks))}
		v.lists[l.ID] = text
	}
	return text, nil
}

// stretch is within, for players: an error says that there is nothing of the clip.
func (v *recorded) stretch(c playback.Clip) (from, to int, err error) {
	from, to = v.within(c)
	switch {
	case from < to:
	case v.whole:
		err = fault.New(fault.NotFound, "there is nothing to play in this stretch")
	default:
		err = fault.New(fault.NotReady, "there is nothing of this stretch now: ask again when it is on")
	}
	return from, to, err
}

// within gives the segments [from, to) that have something of a clip.
func (v *recorded) within(c playback.Clip) (from, to int) {
	const slack = 1e-6 // of float rounding
	to = len(v.timeline.Marks)
	starts := func(i int) time.Time { return v.timeline.Marks[i].Start }
	for from < to && (v.spans[from+1] <= c.From+slack || !c.Begin.IsZero() && !starts(from).Add(v.length(from)).After(c.Begin)) {
		from++
	}
	for to > from && (c.To > 0 && v.spans[to-1] >= c.To-slack || !c.End.IsZero() && !starts(to-1).Before(c.End)) {
		to--
	}
	return from, to
}

func (v *recorded) length(i int) time.Duration {
	return time.Duration((v.spans[i+1] - v.spans[i]) * float64(time.Second))
}

// render lists the segments [from, to).
func (v *recorded) render(l *timeline.Lane, from, to int) []byte {
	m := &hls.Media{Type: hls.VOD, TargetDuration: v.target, MediaSequence: v.timeline.First + int64(from), Ended: v.whole}
	for i := 1; i <= from; i++ {
		if v.timeline.Marks[i].Discontinuity {
			m.DiscontinuitySequence++
		}
	}
	if !v.whole {
		m.Type = hls.Event
	}
	m.Independent = l.Kind != frame.Video || v.whole && v.timeline.Independent()
	ext, last := "m4s", -1
	if l.Kind == frame.Text {
		ext, last = "vtt", 0
	}
	for i := from; i < to; i++ {
		c, mark := l.Chunks[i], v.timeline.Marks[i]
		s := hls.Segment{
			URI: hls.InGeneration(mark.Generation, hls.SegmentURI(l.ID, v.timeline.First+int64(i), ext)), Duration: seconds64(c.Duration, l.Timescale),
			Discontinuity: mark.Discontinuity && i > from, Gap: c.Gap,
		}
		if !mark.Start.IsZero() {
			s.ProgramDateTime = mark.Start.Add(time.Duration(c.Apart) * time.Millisecond)
		}
		if c.Init != last && !c.Gap {
			s.Map, last = initURI(l, c.Init), c.Init
		}
		m.Segments = append(m.Segments, s)
	}
	return m.Append(make([]byte, 0, 256+96*len(m.Segments)))
}

// initURI is the URI of an initialization segment; those that are made when asked for are declared nowhere.
func initURI(l *timeline.Lane, n int) string {
	generation := int64(0)
	if n < len(l.Inits) {
		generation = l.Inits[n].Generation
	}
	return hls.InGeneration(generation, hls.InitURI(l.ID, n))
}

// named says whether a resource's name has the generation that it was published in.
func (v *recorded) named(l *timeline.Lane, r hls.Resource) bool {
	if r.Init < 0 {
		t := v.timeline.Find(r.MSN)
		return t == nil || t.Marks[r.MSN-t.First].Generation == r.Generation
	}
	if tail := v.timeline.Tail; tail != nil && r.Init >= len(l.Inits) && tail.Lane(l.ID) != nil {
		l = tail.Lane(l.ID)
	}
	return initURI(l, r.Init) == hls.InGeneration(r.Generation, hls.InitURI(l.ID, r.Init))
}

func seconds64(ticks int64, scale uint32) time.Duration {
	s := int64(scale)
	return time.Duration(ticks/s)*time.Second + time.Duration(ticks%s)*time.Second/time.Duration(s)
}

// Chunk implements playback.Presentation.
func (v *recorded) Chunk(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	missing := fault.New(fault.NotFound, "there is no such rendition or segment")
	l := v.lane(rendition)
	if l == nil || r.Part >= 0 || !v.named(l, r) {
		return playback.Body{}, missing
	}
	w := v.byRung[rendition]
	if tail := v.timeline.Tail; tail != nil && l.Kind != frame.Text && (r.Init < 0 && tail.Find(r.MSN) != nil || w == nil && r.Init >= len(l.Inits)) {
		return v.listed(ctx, tail, rendition, r)
	}
	if w != nil && r.Init <= 0 && r.Ext != "vtt" {
		b, err := v.p.rung(ctx, w, r)
		if err == nil && r.Init < 0 {
			v.p.opt.Rungs.Ahead(ctx, w, r.MSN)
		}
		return b, err
	}
	if r.Init >= 0 {
		return v.init(ctx, l, r.Init)
	}
	i := r.MSN - v.timeline.First
	if i < 0 || i >= int64(len(l.Chunks)) || l.Chunks[i].Gap {
		return playback.Body{}, missing
	}
	if (l.Kind == frame.Text) != (r.Ext == "vtt") {
		return playback.Body{}, missing
	}
	if l.Kind == frame.Text {
		return v.text(ctx, l, i)
	}
	return v.segment(ctx, l, r.MSN)
}

// listed is an init segment or a segment that was listed while the asset was live, behind its end.
func (v *recorded) listed(ctx context.Context, tail *timeline.Timeline, rendition string, r hls.Resource) (playback.Body, error) {
	missing := fault.New(fault.NotFound, "there is no such rendition or segment")
	if w := v.byRung[rendition]; w != nil && r.Init < 0 {
		beyond, source := *w, tail.Lane(w.Lane.ID)
		beyond.Timeline, beyond.Lane, beyond.Source = tail, source, original{v, source}
		return v.p.rung(ctx, &beyond, r)
	}
	l := tail.Lane(rendition)
	switch {
	case l == nil:
		return playback.Body{}, missing
	case r.Init >= 0:
		return v.init(ctx, l, r.Init)
	case l.Chunks[r.MSN-tail.First].Gap:
		return playback.Body{}, missing
	}
	return v.segment(ctx, l, r.MSN)
}

// segment is one of a rendition that is stored.
func (v *recorded) segment(ctx context.Context, l *timeline.Lane, msn int64) (playback.Body, error) {
	c := l.Chunks[msn-v.timeline.Find(msn).First]
	if c.Object == "" && l.Source != nil {
		segment, size, err := v.p.opt.Library.Segment(ctx, *l.Source, msn, c)
		return playback.Body{Reader: segment, Size: size}, err
	}
	if l.Inits[c.Init].Still {
		return v.p.still(ctx, msn, c)
	}
	return v.p.object(ctx, c.Object, 0, -1)
}

func (v *recorded) init(ctx context.Context, l *timeline.Lane, n int) (playback.Body, error) {
	if n >= len(l.Inits) {
		return playback.Body{}, fault.New(fault.NotFound, "there is no such init segment")
	}
	if l.Inits[n].Object == "" && l.Source != nil {
		data, err := v.p.opt.Library.Init(ctx, *l.Source)
		return playback.Body{Data: data}, err
	}
	return v.p.object(ctx, l.Inits[n].Object, 0, -1)
}

// text is a WebVTT segment: the cues that show during it, with the map to the media's clock.
func (v *recorded) text(ctx context.Context, l *timeline.Lane, i int64) (playback.Body, error) {
	d, err := v.p.document(ctx, v.texts[l.ID].Object)
	if err != nil {
		return playback.Body{}, err
	}
	zero := int64(math.Round(v.timeline.ZeroTime() * 90000))
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return playback.Body{Data: d.Slice(at(v.spans[i]), at(v.spans[i+1]), zero)}, nil
}

// Sidecar implements playback.Presentation.
func (v *recorded) Sidecar(ctx context.Context, track string) (playback.Body, error) {
	tr, ok := v.texts[track]
	if !ok {
		return playback.Body{}, fault.New(fault.NotFound, "there is no such text track")
	}
	return v.p.object(ctx, tr.Object, 0, -1)
}
