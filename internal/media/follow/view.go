package follow

import (
	"bytes"
	"context"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/captions"
	"millrace/internal/media/delivered"
	"millrace/internal/media/follow/wire"
	"millrace/internal/media/hls"
	"millrace/internal/media/metering"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

// view is a broadcast of another node as it is watched. It implements playback.Live.
type view struct {
	*broadcast

	objects delivered.Objects // what is stored; may be nil

	event bool
	names string // of all text renditions that are offered
	added string // of those that were added
}

var _ playback.Live = view{}

// Multivariant implements playback.Renditions.
func (v view) Multivariant(ctx context.Context, c playback.Clip) (*hls.Multivariant, error) {
	v.touch()
	a := wire.Ask{What: wire.Multivariant, Event: v.event, Texts: v.names, Clip: wire.ClipOf(c)}
	r, err := v.ask(ctx, a)
	if err != nil {
		return nil, err
	}
	return wire.ReadMultivariant(r.data) // each viewer has one, and changes it
}

// Pictures implements playback.Renditions.
func (v view) Pictures(ctx context.Context) ([]hls.Picture, error) {
	r, err := v.ask(ctx, wire.Ask{What: wire.Pictures, Event: v.event, Texts: v.added})
	if err != nil {
		return nil, err
	}
	return wire.ReadPictures(r.data)
}

// Chunk implements playback.Renditions.
func (v view) Chunk(ctx context.Context, rendition string, res hls.Resource) (playback.Body, error) {
	v.touch()
	a := wire.Ask{What: wire.Chunk, Event: v.event, Texts: v.added, Rendition: rendition, Resource: res}
	if b, ok := v.stored(ctx, a); ok {
		return b, nil
	}
	r, err := v.keep(ctx, a)
	if err != nil {
		return playback.Body{}, err
	}
	v.wants(rendition)
	m := r.media
	b := playback.Body{Data: r.data, Type: m.Type, Text: m.Text, Init: m.Init, Start: m.Start}
	if m.Length > 0 {
		b.Watched = metering.Delivery{Of: v.meter, Length: m.Length, Pixels: m.Pixels}
	}
	return b, nil
}

// stored is media that is not in memory, from where it is stored, while its broadcast is adrift: of all but parts and
// text, as far as it was stored when the owner was lost.
func (v view) stored(ctx context.Context, a wire.Ask) (playback.Body, bool) {
	if !v.isAdrift() || v.objects == nil || a.Resource.Part >= 0 || a.Resource.Ext == "vtt" {
		return playback.Body{}, false
	}
	if _, ok := v.f.kept.get(v.adrift.media, a); ok {
		return playback.Body{}, false
	}
	uri := hls.SegmentURI(a.Rendition, a.Resource.MSN, a.Resource.Ext)
	if a.Resource.Init >= 0 {
		uri = hls.InitURI(a.Rendition, a.Resource.Init)
	}
	key := objectkey.Resource(v.about.Media, hls.InGeneration(a.Resource.Generation, uri))
	b, err := v.objects.Open(ctx, key, 0, -1)
	return b, err == nil
}

// Covers implements playback.Renditions.
func (v view) Covers(ctx context.Context, rendition string, res hls.Resource, c playback.Clip) (bool, error) {
	r, err := v.ask(ctx, wire.Ask{
		What: wire.Covers, Event: v.event, Texts: v.added, Rendition: rendition, Resource: res, Clip: wire.ClipOf(c),
	})
	if err != nil {
		return false, err
	}
	return wire.Decode[bool](r.data)
}

// Text implements playback.Live.
func (v view) Text(ctx context.Context, rendition string) (captions.Document, error) {
	v.touch()
	r, err := v.ask(ctx, wire.Ask{What: wire.Text, Event: v.event, Texts: v.added, Rendition: rendition})
	if err != nil {
		return captions.Document{}, err
	}
	return wire.Cues(r.data)
}

// TextSpan implements playback.Live.
func (v view) TextSpan(ctx context.Context, rendition string, res hls.Resource) (from, to time.Duration, err error) {
	v.touch()
	r, err := v.ask(ctx, wire.Ask{
		What: wire.TextSpan, Event: v.event, Texts: v.added, Rendition: rendition, Resource: res,
	})
	if err != nil {
		return 0, 0, err
	}
	s, err := wire.Decode[wire.Span](r.data)
	return s.From, s.To, err
}

// Footage implements playback.Live.
func (v view) Footage(ctx context.Context) (playback.Footage, error) {
	v.touch()
	r, err := v.ask(ctx, wire.Ask{What: wire.Footage, Event: v.event, Texts: v.added})
	if err != nil {
		return playback.Footage{}, err
	}
	entries, err := timeline.ReadIndex(bytes.NewReader(r.data))
	var t *timeline.Timeline
	if err == nil {
		t, err = timeline.Build(entries)
	}
	if err != nil {
		return playback.Footage{}, fault.Wrap(fault.Internal, err,
			"the node that has the live stream gave a timeline that can't be read")
	}
	if t.Rendition(timeline.MainVideo) == nil {
		return playback.Footage{}, fault.New(fault.Internal,
			"the node that has the live stream gave a timeline without video")
	}
	f := playback.Footage{Timeline: t, Source: film{v.broadcast}}
	if r.film.Live {
		f.Newest = film{v.broadcast}.newest
	}
	return f, nil
}

// film is the video of a broadcast of another node, for images. It implements delivered.Source.
type film struct{ *broadcast }

// Init implements delivered.Source.
func (f film) Init(ctx context.Context, n int) ([]byte, error) {
	r, err := f.keep(ctx, wire.Ask{What: wire.FilmInit, Resource: hls.Resource{Init: n}})
	return r.data, err
}

// Segment implements delivered.Source.
func (f film) Segment(ctx context.Context, msn int64) (delivered.Body, error) {
	r, err := f.keep(ctx, wire.Ask{What: wire.FilmSegment, Resource: hls.Resource{Init: -1, MSN: msn, Part: -1}})
	return delivered.Body{Data: r.data}, err
}

func (f film) newest(ctx context.Context) (init int, segment []byte, err error) {
	r, err := f.ask(ctx, wire.Ask{What: wire.FilmNewest})
	return r.film.Init, r.data, err
}
