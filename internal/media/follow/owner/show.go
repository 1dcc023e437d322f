package owner

import (
	"bytes"
	"context"
	"net/http"

	"millrace/internal/fault"
	"millrace/internal/media/delivered"
	"millrace/internal/media/follow/wire"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

// show sends what is asked of a broadcast that is watched in one way.
func show(ctx context.Context, w http.ResponseWriter, v playback.Live, ask wire.Ask) error {
	clip, err := ask.Clip.Value()
	if err != nil {
		return err
	}
	switch ask.What {
	case wire.Multivariant:
		m, err := v.Multivariant(ctx, clip)
		return value(w, m, err)
	case wire.Pictures:
		all, err := v.Pictures(ctx)
		return value(w, all, err)
	case wire.Playlist:
		return playlist(ctx, w, v, ask, clip)
	case wire.Chunk:
		b, err := v.Chunk(ctx, ask.Rendition, ask.Resource)
		return media(w, b, err)
	case wire.Covers:
		covers, err := v.Covers(ctx, ask.Rendition, ask.Resource, clip)
		return value(w, covers, err)
	case wire.Text:
		d, err := v.Text(ctx, ask.Rendition)
		return value(w, d.Cues(), err)
	case wire.TextSpan:
		from, to, err := v.TextSpan(ctx, ask.Rendition, ask.Resource)
		return value(w, wire.Span{From: from, To: to}, err)
	case wire.Footage, wire.FilmInit, wire.FilmSegment, wire.FilmNewest:
		return film(ctx, w, v, ask)
	case wire.About, wire.Changes: // have been responded to
	}
	return fault.New(fault.Invalid, "there is nothing of the name %q", ask.What)
}

func playlist(ctx context.Context, w http.ResponseWriter, v playback.Live, ask wire.Ask, clip playback.Clip) error {
	r := playback.Reload{MSN: ask.MSN, Part: ask.Part, Skip: ask.Skip, TextHoldBack: ask.Hold, Clip: clip}
	t, err := v.Playlist(ctx, ask.Rendition, r, ask.Compressed)
	if err == nil {
		err = head(w, wire.ListedHeader, wire.Listed{MaxAge: t.MaxAge, At: t.At})
	}
	if err != nil {
		return err
	}
	return send(w, delivered.Body{Data: t.Data})
}

// media sends a segment, part or init segment.
func media(w http.ResponseWriter, b delivered.Body, err error) error {
	if err != nil {
		return err
	}
	err = head(w, wire.MediaHeader, wire.Media{
		Type: b.Type, Text: b.Text, Length: b.Watched.Length, Pixels: b.Watched.Pixels, Init: b.Init, Start: b.Start,
	})
	if err != nil {
		if b.Reader != nil {
			_ = b.Reader.Close() // nothing was read
		}
		return err
	}
	return send(w, b)
}

// film sends what images are taken from.
func film(ctx context.Context, w http.ResponseWriter, v playback.Live, ask wire.Ask) error {
	f, err := v.Footage(ctx)
	if err != nil {
		return err
	}
	var body delivered.Body
	about := wire.Film{Live: f.Newest != nil}
	switch ask.What { //nolint:exhaustive // the caller knows which these are
	case wire.Footage:
		var index bytes.Buffer
		err = timeline.WriteIndex(&index, f.Timeline.Entries())
		body.Data = index.Bytes()
	case wire.FilmInit:
		body.Data, err = f.Source.Init(ctx, ask.Resource.Init)
	case wire.FilmSegment:
		body, err = f.Source.Segment(ctx, ask.Resource.MSN)
	default:
		if f.Newest == nil {
			return fault.New(fault.NotFound, "the broadcast has ended")
		}
		about.Init, body.Data, err = f.Newest(ctx)
	}
	if err != nil {
		return err
	}
	if err = head(w, wire.FilmHeader, about); err != nil {
		return err
	}
	return send(w, body)
}
