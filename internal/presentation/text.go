package presentation

import (
	"context"
	"math"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/media/captions"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
)

// text is a WebVTT segment: the cues that show during it, with the map to the media's clock.
func (rec *recorded) text(ctx context.Context, l *timeline.Rendition, i int64) (playback.Body, error) {
	d, err := rec.document(ctx, rec.texts[l.ID])
	if err != nil {
		return playback.Body{}, err
	}
	zero := int64(math.Round(rec.timeline.ZeroTime() * 90000))
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return playback.Body{Data: d.Slice(at(rec.spans[i]), at(rec.spans[i+1]), zero), Text: true}, nil
}

// document is a text track's cues: of its file, or of a recording that is not finished.
func (rec *recorded) document(ctx context.Context, tr asset.Track) (captions.Document, error) {
	if tr.Object != "" {
		return rec.p.document(ctx, tr.Object)
	}
	return mediastore.LiveDocument(rec.timeline, tr.Rendition), nil
}

// Sidecar implements playback.Presentation.
func (rec *recorded) Sidecar(ctx context.Context, track string) (playback.Body, error) {
	tr, ok := rec.texts[track]
	if !ok {
		return playback.Body{}, fault.New(fault.NotFound, "there is no such text track")
	}
	if tr.Object != "" && !tr.InPictures() {
		return rec.p.objects.Open(ctx, tr.Object, 0, -1)
	}
	d, err := rec.document(ctx, tr)
	if err != nil {
		return playback.Body{}, err
	}
	return fileOf(tr, d), nil
}

// fileOf is a text track as a file. Captions of pictures were cut where the segments of a broadcast end, and the
// segments stay as they are: what was given at an address never changes.
func fileOf(tr asset.Track, d captions.Document) playback.Body {
	if tr.InPictures() {
		d = d.Joined()
	}
	return playback.Body{Data: d.AppendVTT(nil)}
}
