package presentation

import (
	"millrace/internal/control/asset"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/metering"
	"millrace/internal/media/timeline"
)

// meteredAs is how what is sent of an asset is counted.
func meteredAs(a asset.Asset) metering.Asset {
	return metering.Asset{ID: string(a.ID), Environment: string(a.Environment), LiveStream: string(a.LiveStream)}
}

// watched is what a viewer has watched of the asset who is sent a segment: the picture, or the sound where there is no
// picture.
func (rec *recorded) watched(rendition string, r hls.Resource) metering.Delivery {
	i := r.MSN - rec.timeline.First
	l := rec.rendition(rendition)
	// What was listed behind the end is nothing of the asset.
	if l == nil || r.Init >= 0 || i < 0 || i >= int64(len(l.Chunks)) {
		return metering.Delivery{}
	}
	out := metering.Delivery{Of: rec.meter, Length: seconds64(l.Chunks[i].Duration, l.Timescale)}
	switch {
	case rec.below.Want(rendition):
		out.Pixels = rec.below.Pixels(rendition)
	case l.Kind == frame.Video && l.Chunks[i].Init < len(l.Inits):
		in := l.Inits[l.Chunks[i].Init]
		out.Pixels = in.Width * in.Height
	case l.Kind == frame.Text || rec.timeline.Rendition(timeline.MainVideo) != nil:
		return metering.Delivery{}
	}
	return out
}
