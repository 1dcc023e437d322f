package bridge

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"math"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// edgeView is a broadcast as it is watched: the last half minute through the live stream's playback ID, all of it (EVENT) through the
// asset's.
type edgeView struct {
	p      *Playback
	stream id.LiveStream // empty when event
	media  string
	edge   *window.Edge
	event  bool
	files  asset.Static
	lower  *lower        // nil: there are no rungs
	tracks []asset.Track // of the asset; those that were added join the playlists when it is finished
}

func (v *edgeView) Media() string { return v.media }

func (v *edgeView) Private() bool { return false }

// Multivariant implements playback.Presentation.
func (v *edgeView) Multivariant(ctx context.Context, c playback.Clip) (*hls.Multivariant, error) {
	if !v.event && v.edge.Ended() { // who watches already finds the end in the media playlists
		return nil, inactive()
	}
	lanes, err := v.edge.Describe()
	if err != nil {
		return nil, told(err)
	}
	m := &hls.Multivariant{Independent: v.edge.Independent()}
	variant := hls.Variant{}
	var peak, mean float64
	for _, l := range lanes {
		met := l.Listed
		if v.event {
			met = l.Inits
		}
		newest := l.Listed[len(l.Listed)-1]
		addCodecs(&variant, met)
		peak, mean = peak+l.Peak, mean+l.Average
		switch l.Kind {
		case frame.Video:
			variant.URI = hls.PlaylistURI(l.ID)
			variant.Width, variant.Height, variant.FrameRate = newest.Width, newest.Height, newest.FrameRate
		case frame.Audio:
			if len(lanes) == 1 {
				variant.URI = hls.PlaylistURI(l.ID)
				break
			}
			variant.Audio = audioGroup
			m.Renditions = append(m.Renditions, hls.Rendition{
				Type: "AUDIO", GroupID: audioGroup, Name: "Default", Default: true, Channels: newest.Channels, URI: hls.PlaylistURI(l.ID),
			})
		case frame.Text:
		}
	}
	variant.Bandwidth, variant.AverageBandwidth = int64(math.Ceil(peak)), int64(math.Ceil(mean))
	shared := hls.Variant{Audio: variant.Audio}
	for _, l := range lanes {
		if l.Kind == frame.Audio {
			shared.Bandwidth = int64(math.Ceil(l.Peak))
			met := l.Listed
			if v.event {
				met = l.Inits
			}
			addCodecs(&shared, met)
		}
	}
	rungs, shown := v.lower.variants(shared)
	if shown {
		m.Variants = []hls.Variant{variant}
	}
	m.Variants = append(m.Variants, rungs...)
	return m, v.has(ctx, m, c)
}

// has says that every playlist of a multivariant one has something of a clip. It makes nobody encode a rung.
func (v *edgeView) has(ctx context.Context, m *hls.Multivariant, c playback.Clip) error {
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
		list, err := v.edge.Playlist(ctx, hls.RenditionOf(uri), window.Reload{Event: v.event, MSN: -1, Part: -1}, false)
		if err != nil {
			return told(err)
		}
		if _, err := v.instant(ctx, list, c, false); err != nil {
			return err
		}
	}
	return nil
}

const (
	audioGroup = "audio"
	textGroup  = "subtitles"
)

// Playlist implements playback.Presentation.
func (v *edgeView) Playlist(ctx context.Context, rendition string, r playback.Reload, compressed bool) (playback.Text, error) {
	v.lower.find(rendition)
	clipped := r.Clip != (playback.Clip{})
	data, err := v.edge.Playlist(ctx, rendition, window.Reload{Event: v.event, MSN: r.MSN, Part: r.Part, Skip: r.Skip && !clipped}, compressed && !clipped)
	if err == nil && clipped {
		data, err = v.instant(ctx, data, r.Clip, compressed)
	}
	return playback.Text{Data: data, MaxAge: 1}, told(err)
}

// instant is what a playlist has of a clip: by the time of day, and of the asset by its seconds. Which segments that is is the picture's to
// say, so that they are the same in all playlists.
func (v *edgeView) instant(ctx context.Context, playlist []byte, c playback.Clip, compressed bool) ([]byte, error) {
	s := hls.Stretch{Begin: c.Begin, End: c.End}
	if v.event {
		s.From, s.To = c.From, c.To
	}
	lead, err := v.edge.Playlist(ctx, timeline.MainVideo, window.Reload{Event: v.event, MSN: -1, Part: -1}, false)
	if errors.Is(err, window.ErrUnknown) { // there is no picture
		lead, err = playlist, nil
	}
	if err != nil {
		return nil, err
	}
	var data []byte
	extent, ok := hls.Find(lead, s)
	if ok {
		data, ok = hls.Within(playlist, extent)
	}
	if !ok {
		return nil, fault.New(fault.NotReady, "there is nothing of this stretch now: ask again when it is on")
	}
	if !compressed {
		return data, nil
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data) // a buffer takes everything
	err = w.Close()
	return b.Bytes(), err
}

// Chunk implements playback.Presentation.
func (v *edgeView) Chunk(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	rung, ok := v.lower.find(rendition)
	if !v.edge.Named(rendition, r) {
		return playback.Body{}, told(window.ErrUnknown)
	}
	if ok {
		return v.lowerChunk(ctx, rung, rendition, r)
	}
	var at window.Place
	var err error
	switch {
	case r.Init >= 0:
		at, err = v.edge.ReadInit(rendition, r.Init)
	case r.Ext != "m4s":
		err = window.ErrUnknown
	case r.Part >= 0:
		at, err = v.edge.ReadPart(ctx, rendition, r.MSN, r.Part)
	default:
		at, err = v.edge.ReadSegment(ctx, rendition, r.MSN)
	}
	return v.place(ctx)(at, err)
}

// place is what is found where an edge says.
func (v *edgeView) place(ctx context.Context) func(window.Place, error) (playback.Body, error) {
	return func(at window.Place, err error) (playback.Body, error) {
		if err != nil {
			return playback.Body{}, told(err)
		}
		if at.Data != nil {
			return playback.Body{Data: at.Data}, nil
		}
		if at.File != nil {
			if s, err := at.File.Section(at.Offset, at.N); err == nil { // else it has been stored since
				return playback.Body{Reader: s, Size: at.N}, nil
			}
		}
		return v.p.object(ctx, at.Object, at.Offset, at.N)
	}
}

// Sidecar implements playback.Presentation.
func (v *edgeView) Sidecar(ctx context.Context, track string) (playback.Body, error) {
	for _, t := range v.tracks {
		if string(t.ID) == track && t.Type == asset.TextTrack && t.Status == asset.TrackReady {
			return v.p.object(ctx, t.Object, 0, -1)
		}
	}
	return playback.Body{}, fault.New(fault.NotFound, "there is no such text track")
}

// Earlier implements playback.Series: who watches a broadcast while the next one begins still finds its end.
func (v *edgeView) Earlier(media string) (playback.Presentation, bool) {
	if v.event {
		return nil, false
	}
	b := v.p.opt.Live.earlier(v.stream, id.Media(media))
	if b == nil {
		return nil, false
	}
	return &edgeView{p: v.p, stream: v.stream, media: media, edge: b.edge, lower: b.lower}, true
}

// told puts an edge's answer into the words of a fault.
func told(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, window.ErrNotYet):
		return fault.New(fault.NotReady, "the live stream has just started: ask again in a moment")
	case errors.Is(err, window.ErrTooFar):
		return fault.New(fault.Invalid, "_HLS_msn: is too far ahead of the live edge")
	case errors.Is(err, window.ErrUnknown):
		return fault.New(fault.NotFound, "there is no such rendition, segment or part")
	case errors.Is(err, window.ErrTimeout):
		return fault.New(fault.Unavailable, "the live edge stands still")
	}
	return err
}
