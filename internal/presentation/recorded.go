package presentation

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/metering"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/playback"
	"millrace/internal/media/rendition"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
)

// recorded is an asset as it is watched from storage: its timeline with the ready tracks beside it.
type recorded struct {
	p          *Source
	media      id.Media
	order      Order // of what workers make of it, with the asset and its row's revision
	read       time.Time
	timeline   *timeline.Timeline
	whole      bool // nothing is added any more
	renditions []*timeline.Rendition
	tracks     map[string]asset.Track // by rendition
	texts      map[string]asset.Track // by track ID: text tracks
	// Text tracks, by ID, that a better one stands in for: they are there for who plays them, and not listed.
	replaced map[string]bool
	spans    []float64
	target   int // EXT-X-TARGETDURATION

	files     asset.Static
	thumbnail *float64 // the asset's thumbnail_time, in seconds; nil: not chosen

	below *rendition.Recorded // made of its video

	meter *metering.Counter
	title string

	mu    sync.Mutex
	lists map[string]*list
	clips map[string]*clipped // the last one of each rendition
}

// present joins a timeline and the asset's ready tracks: alternate audio and text are cut where the video is cut.
func (src *Source) present(ctx context.Context, row asset.Asset, t *timeline.Timeline) (*recorded, error) {
	v := &recorded{
		p: src, media: row.Media, order: Order{Asset: row.ID, Revision: row.Revision}, read: src.opt.Now(),
		timeline: t, whole: row.Index != "" ||
			row.LiveStream != "" && !row.IsLive, renditions: append([]*timeline.Rendition(nil), t.Renditions...),
		tracks: map[string]asset.Track{}, texts: map[string]asset.Track{}, replaced: replaced(row.Tracks),
		spans: t.Spans(), lists: map[string]*list{},
		clips:     map[string]*clipped{},
		thumbnail: row.ThumbnailTime, files: row.Static, meter: src.opt.Meter.Counter(meteredAs(row)),
		title: row.Options.Meta.Title,
	}
	v.below = rendition.NewRecorded(src.opt.Renditions, src.objects, rendition.Recording{
		Media: row.Media, Timeline: t, Open: src.open, Whole: v.whole, Live: row.LiveStream != "",
		Limits:    rendition.Limits{Quality: row.Quality(), MaxResolution: row.Options.MaxResolution},
		Elsewhere: byWorkers(src.opt.Workers, v.order),
	})
	v.renditions = append(v.renditions, v.below.Renditions()...)
	for _, tr := range row.Tracks {
		if tr.Status != asset.TrackReady {
			continue
		}
		v.tracks[tr.Rendition] = tr
		switch {
		case tr.Type == asset.TextTrack:
			v.texts[string(tr.ID)] = tr
			v.renditions = append(v.renditions, v.ofText(tr))
		case tr.Type == asset.AudioTrack && tr.Object != "":
			l, err := src.alternate(ctx, tr, v)
			if fault.Is(err, fault.NotFound) { // deleted a moment ago
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("open alternate audio %s: %w", tr.ID, err)
			}
			v.renditions = append(v.renditions, l)
		}
	}
	v.target = t.Target
	for _, l := range v.renditions { // the same in every rendition, RFC 8216bis section 6.2.4
		for i := range l.Chunks {
			v.target = max(v.target, int(math.Round(l.Seconds(i))))
		}
	}
	return v, nil
}

// replaced are the text tracks, by ID, that were recognised while an asset was recorded and once more when it was
// whole.
func replaced(tracks []asset.Track) map[string]bool {
	out := map[string]bool{}
	for _, t := range tracks {
		if slices.ContainsFunc(tracks, func(o asset.Track) bool { return o.StandsInFor(t) }) {
			out[string(t.ID)] = true
		}
	}
	return out
}

func (rec *recorded) ofText(tr asset.Track) *timeline.Rendition {
	l := &timeline.Rendition{RenditionInfo: timeline.RenditionInfo{
		ID: string(tr.ID), Kind: frame.Text,
		Timescale: 1000000,
	}}
	for i := range len(rec.spans) - 1 {
		from, to := int64(math.Round(rec.spans[i]*1e6)), int64(math.Round(rec.spans[i+1]*1e6))
		l.Chunks = append(l.Chunks, timeline.Chunk{Rendition: l.ID, Time: from, Duration: to - from})
	}
	return l
}

func (src *Source) alternate(ctx context.Context, tr asset.Track, v *recorded) (*timeline.Rendition, error) {
	f, err := src.opt.Library.File(ctx, tr.Object)
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

func (rec *recorded) Media() string { return string(rec.media) }

// Began implements playback.Presentation: it is no broadcast any more.
func (rec *recorded) Began() time.Time { return time.Time{} }

// Earlier implements playback.Presentation: a recording's media stays the same.
func (rec *recorded) Earlier(context.Context, string) (playback.Presentation, error) {
	return nil, errNoEarlier()
}

// Description implements playback.Presentation.
func (rec *recorded) Description() playback.Description {
	d := playback.Description{Title: rec.title}
	if rec.whole {
		d.Duration = rec.timeline.Duration()
	}
	return d
}

// Multivariant implements playback.Presentation.
func (rec *recorded) Multivariant(_ context.Context, c playback.Clip) (*hls.Multivariant, error) {
	if len(rec.timeline.Marks) == 0 {
		return nil, fault.New(fault.NotReady, "the asset is being prepared: ask again in a moment")
	}
	if _, _, err := rec.bounds(c); err != nil {
		return nil, err
	}
	var list rendition.Listing
	for _, l := range rec.renditions {
		t := rendition.Track{ID: l.ID, Inits: l.Inits, Peak: l.Peak, Average: l.Average()}
		switch l.Kind {
		case frame.Video:
			if l.ID != timeline.MainVideo {
				continue
			}
			at := rendition.Largest(l)
			list.Picture(t, hls.Variant{
				Width: at.Width, Height: at.Height, FrameRate: at.FrameRate, NoCaptions: captionsApart(rec.texts),
			})
		case frame.Audio:
			list.Sound(t, soundOf(rec.tracks[l.ID], l))
		case frame.Text:
			if !rec.replaced[l.ID] {
				list.Text(l.ID, subtitlesOf(rec.texts[l.ID]))
			}
		}
	}
	return list.Multivariant(rec.below, rec.whole && rec.timeline.Independent()), nil
}

// Pictures implements playback.Renditions.
func (rec *recorded) Pictures(context.Context) ([]hls.Picture, error) {
	video := rec.timeline.Rendition(timeline.MainVideo)
	if video == nil {
		return nil, nil
	}
	inits := video.Inits
	if tail := rec.timeline.Tail; tail != nil && tail.Rendition(video.ID) != nil {
		inits = slices.Concat(inits, tail.Rendition(video.ID).Inits)
	}
	return rendition.Pictures(inits, rec.below), nil
}

// soundOf is how a rendition of sound is listed.
func soundOf(tr asset.Track, l *timeline.Rendition) hls.Rendition {
	r := hls.Rendition{Name: tr.Name, Language: language(tr), Default: l.ID == timeline.MainAudio}
	if r.Name == "" {
		r.Name = "Default"
	}
	if n := len(l.Inits); n > 0 {
		r.Channels = l.Inits[n-1].Channels
	}
	return r
}

// subtitlesOf is how a rendition of text is listed.
func subtitlesOf(tr asset.Track) hls.Rendition {
	return hls.Rendition{
		Name: tr.Name, Language: language(tr), Forced: tr.Forced, Characteristics: characteristics(tr),
	}
}

// characteristics says of subtitles for the deaf or hard of hearing what they are, RFC 8216bis section 4.4.6.1.
func characteristics(tr asset.Track) string {
	if !tr.ClosedCaptions {
		return ""
	}
	return "public.accessibility.transcribes-spoken-dialog,public.accessibility.describes-music-and-sound"
}

// captionsApart reports whether the closed captions of the pictures are a text track.
func captionsApart(texts map[string]asset.Track) bool {
	for _, tr := range texts {
		if tr.InPictures() {
			return true
		}
	}
	return false
}

// language leaves out what says nothing.
func language(tr asset.Track) string {
	if tr.LanguageCode == "und" {
		return ""
	}
	return tr.LanguageCode
}

// rendition is one that viewers may see, by its name; nil: there is none.
func (rec *recorded) rendition(rendition string) *timeline.Rendition {
	if rendition == timeline.MainVideo && rec.below.Withholds() {
		return nil
	}
	for _, l := range rec.renditions {
		if l.ID == rendition {
			return l
		}
	}
	return nil
}

func seconds64(ticks int64, scale uint32) time.Duration {
	s := int64(scale)
	return time.Duration(ticks/s)*time.Second + time.Duration(ticks%s)*time.Second/time.Duration(s)
}

// Covers implements playback.Presentation.
func (rec *recorded) Covers(_ context.Context, _ string, r hls.Resource, c playback.Clip) (bool, error) {
	return rec.covers(r, c), nil
}

func (rec *recorded) covers(r hls.Resource, c playback.Clip) bool {
	if r.Init >= 0 {
		return true
	}
	// It was listed behind the end while the asset was live.
	if t := rec.timeline.Find(r.MSN); t != nil && t != rec.timeline {
		at, i := rec.spans[len(rec.spans)-1]+t.Spans()[r.MSN-t.First], r.MSN-t.First
		return (c.To <= 0 || at < c.To) && (c.End.IsZero() || t.Marks[i].Start.Before(c.End))
	}
	from, to := rec.within(c)
	i := r.MSN - rec.timeline.First
	return i >= int64(from) && i < int64(to)
}

// Chunk implements playback.Presentation.
func (rec *recorded) Chunk(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	b, err := rec.chunk(ctx, rendition, r)
	if err == nil && r.Init < 0 {
		b.Watched = rec.watched(rendition, r)
		b.Init, b.Start = rec.decoded(rendition, r.MSN)
	}
	return b, err
}

func (rec *recorded) chunk(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	missing := fault.New(fault.NotFound, "there is no such rendition or segment")
	l := rec.rendition(rendition)
	if l == nil || r.Part >= 0 || !r.Fits(l.Kind == frame.Text) || !rec.named(l, r) {
		return playback.Body{}, missing
	}
	if rec.below.Want(rendition) {
		return rec.below.Chunk(ctx, rendition, r)
	}
	if tail := rec.timeline.Tail; tail != nil && l.Kind != frame.Text &&
		(r.Init < 0 && tail.Find(r.MSN) != nil || r.Init >= len(l.Inits)) {
		return rec.listed(ctx, tail, rendition, r)
	}
	if r.Init >= 0 {
		data, err := rec.source(l).Init(ctx, r.Init)
		return playback.Body{Data: data}, err
	}
	i := r.MSN - rec.timeline.First
	if i < 0 || i >= int64(len(l.Chunks)) || l.Chunks[i].Gap {
		return playback.Body{}, missing
	}
	if l.Kind == frame.Text {
		return rec.text(ctx, l, i)
	}
	return rec.source(l).Segment(ctx, r.MSN)
}

// source is a rendition's media.
func (rec *recorded) source(l *timeline.Rendition) mediastore.Rendition {
	return rec.p.rendition(rec.timeline, l)
}

// listed is an init segment or a segment that was listed while the asset was live, behind its end.
func (rec *recorded) listed(
	ctx context.Context, tail *timeline.Timeline, rendition string, r hls.Resource,
) (playback.Body, error) {
	missing := fault.New(fault.NotFound, "there is no such rendition or segment")
	l := tail.Rendition(rendition)
	switch {
	case l == nil:
		return playback.Body{}, missing
	case r.Init >= 0:
		data, err := rec.p.rendition(tail, l).Init(ctx, r.Init)
		return playback.Body{Data: data}, err
	}
	return rec.p.rendition(tail, l).Segment(ctx, r.MSN)
}
