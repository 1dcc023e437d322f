package presentation

import (
	"context"
	"slices"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

// live is a broadcast that goes on, or has just ended: the last half minute through the live stream's playback ID, all
// of it (EVENT) through the asset's.
type live struct {
	playback.Live

	p      *Source
	about  playback.About
	stream id.LiveStream // empty through the asset's
	files  asset.Static
	title  string
	tracks []asset.Track // of the asset; audio that was added joins the playlists when it is finished
}

// live is a broadcast through the live stream's playback ID; tracks are those of its asset that are made while it goes
// on.
func (src *Source) live(b playback.Broadcast, s id.LiveStream, tracks []asset.Track) *live {
	about := b.About()
	view := b.View(playback.Watch{Texts: textsOf(tracks), Objects: src.objects})
	return &live{Live: view, p: src, about: about, stream: s, title: about.Title, tracks: tracks}
}

// event is a broadcast through the playback ID of its asset.
func (src *Source) event(b playback.Broadcast, row *asset.Asset) *live {
	texts := append(textsOf(row.Tracks), addedTo(row.Tracks)...)
	view := b.View(playback.Watch{Event: true, Texts: texts, Objects: src.objects})
	return &live{
		Live: view, p: src, about: b.About(), files: row.Static, title: row.Options.Meta.Title,
		tracks: row.Tracks,
	}
}

// event reports whether all of the broadcast is watched, which is its asset.
func (l *live) event() bool { return l.stream == "" }

func (l *live) Media() string { return string(l.about.Media) }

// Began implements playback.Presentation.
func (l *live) Began() time.Time { return l.about.Began }

// Description implements playback.Presentation.
func (l *live) Description() playback.Description { return playback.Description{Title: l.title} }

// Sidecar implements playback.Presentation.
func (l *live) Sidecar(ctx context.Context, track string) (playback.Body, error) {
	for _, t := range l.tracks {
		switch {
		case string(t.ID) != track || t.Type != asset.TextTrack || t.Status != asset.TrackReady:
		case t.Object != "":
			return l.p.objects.Open(ctx, t.Object, 0, -1)
		default:
			return l.published(ctx, t)
		}
	}
	return playback.Body{}, fault.New(fault.NotFound, "there is no such text track")
}

// published is a text track as far as it is made.
func (l *live) published(ctx context.Context, t asset.Track) (playback.Body, error) {
	d, err := l.Text(ctx, t.Rendition)
	if err != nil {
		return playback.Body{}, err
	}
	return fileOf(t, d), nil
}

// textsOf are the text tracks of an asset that are made while it is recorded, as its broadcast offers them.
func textsOf(tracks []asset.Track) (out []playback.TextName) {
	for _, t := range tracks {
		if t.OfBroadcast() {
			out = append(out, nameOf(t))
		}
	}
	return out
}

// addedTo are the text tracks that were added to an asset while it is recorded, and are ready.
func addedTo(tracks []asset.Track) (out []playback.TextName) {
	for _, t := range tracks {
		if isAdded(t) {
			name := nameOf(t)
			name.Added = true
			out = append(out, name)
		}
	}
	return out
}

func isAdded(t asset.Track) bool {
	return t.Type == asset.TextTrack && t.Status == asset.TrackReady && t.Object != "" && !t.OfBroadcast()
}

func nameOf(t asset.Track) playback.TextName {
	return playback.TextName{
		Rendition: t.Rendition, Name: t.Name, Language: language(t), Characteristics: characteristics(t),
	}
}

// Chunk implements playback.Renditions: of text that was added, the cues of its file.
func (l *live) Chunk(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	i := slices.IndexFunc(l.tracks, func(t asset.Track) bool { return t.Rendition == rendition && isAdded(t) })
	if i < 0 || !l.event() {
		return l.Live.Chunk(ctx, rendition, r)
	}
	from, to, err := l.TextSpan(ctx, rendition, r)
	if err != nil {
		return playback.Body{}, err
	}
	d, err := l.p.document(ctx, l.tracks[i].Object)
	if err != nil {
		return playback.Body{}, err
	}
	return playback.Body{Data: d.Slice(from, to, timeline.Origin*90000), Text: true}, nil
}

func errNoEarlier() error { return fault.New(fault.NotFound, "there is no earlier broadcast") }

// Earlier implements playback.Presentation: who watches a broadcast while the next one begins still finds its end.
func (l *live) Earlier(ctx context.Context, media string) (playback.Presentation, error) {
	if l.event() {
		return nil, errNoEarlier()
	}
	b, err := l.p.opt.Broadcasts.Earlier(ctx, l.stream, id.Media(media))
	if err != nil {
		return nil, err
	}
	return l.p.live(b, l.stream, nil), nil
}
