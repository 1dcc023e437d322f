// Package edgeview presents the live edge of a broadcast to viewers: the renditions at the edge and those that are
// encoded from its video. It implements playback.Broadcast and playback.Live. It must never know resources, storage or
// who watches. It starts no goroutine.
package edgeview

import (
	"context"
	"errors"
	"slices"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/captions"
	"millrace/internal/media/delivered"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/metering"
	"millrace/internal/media/playback"
	"millrace/internal/media/rendition"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// Broadcast is a broadcast that is in this node's memory, running or ended. It implements playback.Broadcast.
type Broadcast struct {
	ID    id.Media
	Edge  *window.Edge
	Below rendition.Set     // made of its video
	Meter *metering.Counter // of what viewers are sent
	Title string            // of the live stream, when the broadcast began
	Asset id.Asset          // that it is recorded as
	Began time.Time         // as every node knows it
}

var _ playback.Broadcast = Broadcast{}

// Moved reports whether an error says that the broadcast goes to another node.
func Moved(err error) bool { return errors.Is(err, window.ErrMoved) }

// About implements playback.Broadcast.
func (b Broadcast) About() playback.About {
	return playback.About{Media: b.ID, Asset: b.Asset, Title: b.Title, Began: b.Began}
}

// Generation numbers who writes the broadcast.
func (b Broadcast) Generation() int64 { return b.Edge.Generation() }

// Revised waits until playlists show something else than a revision, as playback.At numbers them, or until ctx ends. It
// gives the revision that is current then, and whether there will be no other.
func (b Broadcast) Revised(ctx context.Context, revision uint64) (current uint64, ended bool) {
	r := b.Edge.Revised(ctx, revision)
	return r.Number, r.Ended
}

// HasTexts implements playback.Broadcast.
func (b Broadcast) HasTexts() bool { return b.Edge.Texts().Any() }

// View implements playback.Broadcast.
func (b Broadcast) View(w playback.Watch) playback.Live {
	if w.Event {
		var added []string
		for _, t := range w.Texts {
			if t.Added {
				added = append(added, t.Rendition)
			}
		}
		b.Edge.Texts().Offer(added)
	}
	return view{Broadcast: b, Watch: w}
}

// view is a broadcast as it is watched.
type view struct {
	Broadcast
	playback.Watch
}

// Multivariant implements playback.Renditions.
func (v view) Multivariant(ctx context.Context, c playback.Clip) (*hls.Multivariant, error) {
	if !v.Event && v.Edge.Ended() { // a player that watches already finds the end in the media playlists
		return nil, playback.Inactive()
	}
	renditions, err := v.Edge.Describe()
	if err != nil {
		return nil, window.Fault(err)
	}
	var list rendition.Listing
	for _, l := range renditions {
		t := rendition.Track{ID: l.ID, Inits: l.Listed, Peak: l.Peak, Average: l.Average}
		if v.Event {
			t.Inits = l.Inits
		}
		newest := l.Listed[len(l.Listed)-1]
		switch l.Kind {
		case frame.Video:
			list.Picture(t, hls.Variant{
				Width: newest.Width, Height: newest.Height, FrameRate: newest.FrameRate, NoCaptions: l.NoCaptions,
			})
		case frame.Audio:
			list.Sound(t, hls.Rendition{Name: "Default", Default: true, Channels: newest.Channels})
		case frame.Text:
		}
	}
	for _, t := range v.Texts {
		if v.Edge.Texts().Has(t.Rendition) {
			list.Text(t.Rendition, hls.Rendition{
				Name:            t.Name,
				Language:        t.Language,
				Characteristics: t.Characteristics,
			})
		}
	}
	m := list.Multivariant(v.Below, v.Edge.Independent())
	return m, v.has(ctx, m, c)
}

// Pictures implements playback.Renditions.
func (v view) Pictures(context.Context) ([]hls.Picture, error) {
	renditions, err := v.Edge.Describe()
	if err != nil {
		return nil, window.Fault(err)
	}
	i := slices.IndexFunc(renditions, func(l window.Rendition) bool { return l.ID == timeline.MainVideo })
	if i < 0 {
		return nil, nil
	}
	return rendition.Pictures(renditions[i].Inits, v.Below), nil
}

// has checks that every playlist of a multivariant one has something of a clip. It has no rendition encoded.
func (v view) has(ctx context.Context, m *hls.Multivariant, c playback.Clip) error {
	if c == (playback.Clip{}) {
		return nil
	}
	var uris []string
	for i := range m.Renditions {
		uris = append(uris, m.Renditions[i].URI)
	}
	for i := range m.Variants {
		uris = append(uris, m.Variants[i].URI)
	}
	for _, uri := range uris {
		list, err := v.Edge.Playlist(ctx, hls.RenditionOf(uri), window.Reload{Event: v.Event, MSN: -1, Part: -1}, false)
		if err != nil {
			return window.Fault(err)
		}
		if _, err := v.clip(ctx, list, c, false); err != nil {
			return err
		}
	}
	return nil
}

// Playlist implements playback.Renditions.
func (v view) Playlist(
	ctx context.Context, rendition string, r playback.Reload, compressed bool,
) (playback.Text, error) {
	if v.withholds(rendition) {
		return playback.Text{}, window.Fault(window.ErrUnknown)
	}
	v.Below.Want(rendition)
	clipped := r.Clip != (playback.Clip{})
	reload := window.Reload{
		Event: v.Event, MSN: r.MSN, Part: r.Part, Skip: r.Skip && !clipped, TextHoldBack: r.TextHoldBack,
	}
	list, err := v.Edge.Listing(ctx, rendition, reload, compressed && !clipped)
	if err == nil && clipped {
		list.Text, err = v.clip(ctx, list.Text, r.Clip, compressed)
	}
	if err != nil {
		return playback.Text{}, window.Fault(err)
	}
	at := playback.At{
		Revision: list.Revision.Number, Next: list.Next, Parts: list.Parts, Before: list.Before,
		Ended: list.Revision.Ended, Hint: list.Hint,
	}
	return playback.Text{Data: list.Text, MaxAge: 1, At: at}, nil
}

// withholds reports whether a rendition is the video, and that is larger than viewers may see; or text that was added
// to the asset, of which the live stream's viewers have no segments.
func (v view) withholds(rendition string) bool {
	return rendition == timeline.MainVideo && v.Below.Withholds() || !v.Event && v.Edge.Texts().Offered(rendition)
}

// clip is what a playlist has of a clip: by the time of day, and of the asset by its seconds. The segments are chosen
// in the video's playlist, so that they are the same in all playlists.
func (v view) clip(ctx context.Context, playlist []byte, c playback.Clip, compressed bool) ([]byte, error) {
	lead, err := v.Edge.Playlist(ctx, timeline.MainVideo, window.Reload{Event: v.Event, MSN: -1, Part: -1}, false)
	if errors.Is(err, window.ErrUnknown) { // there is no video
		lead, err = playlist, nil
	}
	if err != nil {
		return nil, err
	}
	var data []byte
	extent, ok := hls.Find(lead, v.bounds(c))
	if ok {
		data, ok = hls.Within(playlist, extent)
	}
	if !ok {
		return nil, fault.New(fault.NotReady, "no media of this time range is available yet; try again later")
	}
	if compressed {
		data = hls.Gzip(data)
	}
	return data, nil
}

// Covers implements playback.Renditions.
func (v view) Covers(
	_ context.Context, rendition string, r hls.Resource, c playback.Clip,
) (bool, error) {
	return v.Edge.Covers(rendition, r, v.bounds(c)), nil
}

// bounds are those of c as the playlists have it: the seconds of an asset mean nothing in the last half minute of a
// live stream.
func (v view) bounds(c playback.Clip) hls.Clip {
	s := hls.Clip{Begin: c.Begin, End: c.End}
	if v.Event {
		s.From, s.To = c.From, c.To
	}
	return s
}

// Chunk implements playback.Renditions.
func (v view) Chunk(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	below := v.Below.Want(rendition)
	text := v.Edge.Texts().Has(rendition)
	if v.withholds(rendition) || !r.Fits(text) || !v.Edge.Named(rendition, r) {
		return playback.Body{}, window.Fault(window.ErrUnknown)
	}
	if below {
		b, err := v.Below.Chunk(ctx, rendition, r)
		b.Watched.Of = v.Meter
		return b, err
	}
	if text {
		data, err := v.Edge.Texts().Segment(ctx, rendition, r.MSN)
		return playback.Body{Data: data, Text: true}, window.Fault(err)
	}
	var at window.Location
	var err error
	switch {
	case r.Init >= 0:
		at, err = v.Edge.ReadInit(rendition, r.Init)
	case r.Part >= 0:
		at, err = v.Edge.ReadPart(ctx, rendition, r.MSN, r.Part)
	default:
		at, err = v.Edge.ReadSegment(ctx, rendition, r.MSN)
	}
	b, err := at.Open(ctx, v.Objects, err)
	// Sound beside a picture is not counted: the picture is.
	if rendition == timeline.MainVideo || v.Edge.Inits(timeline.MainVideo) == 0 {
		b.Watched = metering.Delivery{Of: v.Meter, Length: at.Length, Pixels: at.Pixels}
	}
	return b, err
}

// Text implements playback.Live.
func (v view) Text(_ context.Context, rendition string) (captions.Document, error) {
	d, err := v.Edge.Texts().Whole(rendition)
	return d, window.Fault(err)
}

// TextSpan implements playback.Live.
func (v view) TextSpan(
	ctx context.Context, rendition string, r hls.Resource,
) (from, to time.Duration, err error) {
	if v.withholds(rendition) || !r.Fits(true) || !v.Edge.Named(rendition, r) {
		return 0, 0, window.Fault(window.ErrUnknown)
	}
	from, to, err = v.Edge.Texts().Span(ctx, rendition, r.MSN)
	return from, to, window.Fault(err)
}

// Footage implements playback.Live.
func (v view) Footage(context.Context) (playback.Footage, error) {
	t, err := v.Edge.Video(!v.Event)
	if errors.Is(err, window.ErrUnknown) {
		return playback.Footage{}, fault.New(fault.NotFound, "there is no video to take a picture from")
	}
	if err != nil {
		return playback.Footage{}, window.Fault(err)
	}
	f := playback.Footage{Timeline: t, Source: v.Edge.Source(timeline.MainVideo, v.Objects)}
	if !v.Edge.Ended() {
		f.Newest = v.newest
	}
	return f, nil
}

func (v view) newest(ctx context.Context) (init int, segment []byte, err error) {
	at, init, err := v.Edge.NewestKey()
	segment, err = delivered.Bytes(at.Open(ctx, v.Objects, err))
	return init, segment, err
}
