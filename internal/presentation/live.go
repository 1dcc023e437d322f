package presentation

import (
	"context"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/playback"
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
	tracks []asset.Track // of the asset; those that were added join the playlists when it is finished
}

// live is a broadcast through the live stream's playback ID; tracks are those of its asset that are made while it goes
// on.
func (p *Source) live(b playback.Broadcast, s id.LiveStream, tracks []asset.Track) *live {
	about := b.About()
	view := b.View(playback.Watch{Texts: textsOf(tracks), Objects: p.objects})
	return &live{Live: view, p: p, about: about, stream: s, title: about.Title, tracks: tracks}
}

// event is a broadcast through the playback ID of its asset.
func (p *Source) event(b playback.Broadcast, row *asset.Asset) *live {
	view := b.View(playback.Watch{Event: true, Texts: textsOf(row.Tracks), Objects: p.objects})
	return &live{
		Live: view, p: p, about: b.About(), files: row.Static, title: row.Options.Meta.Title,
		tracks: row.Tracks,
	}
}

// event reports whether all of the broadcast is watched, which is its asset.
func (v *live) event() bool { return v.stream == "" }

func (v *live) Media() string { return string(v.about.Media) }

// Description implements playback.Presentation.
func (v *live) Description() playback.Description { return playback.Description{Title: v.title} }

// Sidecar implements playback.Presentation.
func (v *live) Sidecar(ctx context.Context, track string) (playback.Body, error) {
	for _, t := range v.tracks {
		switch {
		case string(t.ID) != track || t.Type != asset.TextTrack || t.Status != asset.TrackReady:
		case t.Object != "":
			return v.p.objects.Open(ctx, t.Object, 0, -1)
		default:
			return v.published(ctx, t)
		}
	}
	return playback.Body{}, fault.New(fault.NotFound, "there is no such text track")
}

// published is a text track as far as it is made.
func (v *live) published(ctx context.Context, t asset.Track) (playback.Body, error) {
	d, err := v.Text(ctx, t.Rendition)
	if err != nil {
		return playback.Body{}, err
	}
	return fileOf(t, d), nil
}

// textsOf are the text tracks of an asset that are made while it is recorded, as its broadcast offers them.
func textsOf(tracks []asset.Track) (out []playback.TextName) {
	for _, t := range tracks {
		if t.OfBroadcast() {
			out = append(out, playback.TextName{
				Rendition: t.Rendition, Name: t.Name, Language: language(t), Characteristics: characteristics(t),
			})
		}
	}
	return out
}

// Earlier implements playback.Presentation: who watches a broadcast while the next one begins still finds its end.
func (v *live) Earlier(media string) (playback.Presentation, bool) {
	if v.event() {
		return nil, false
	}
	b, ok := v.p.opt.Broadcasts.Earlier(v.stream, id.Media(media))
	if !ok {
		return nil, false
	}
	return v.p.live(b, v.stream, nil), true
}
