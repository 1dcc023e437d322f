package ingest

import (
	"context"
	"fmt"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/measure"
	"millrace/internal/media/encode"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/timeline"
)

// opening is how many segments of a file are listed while its decoder is tried. Players begin three segments before the
// end of a list that goes on: at the beginning.
const opening = 3

// open lists the beginning of a file that is stored: it can be watched. Which of its packets decoders refuse was looked
// for before, as what is listed stays; that nothing at all decodes is found out now, and the asset is errored then.
func (w *Worker) open(ctx context.Context, a asset.Asset, t *timeline.Timeline) error {
	var rows []asset.TimelineEntry
	segments := 0
	for i, e := range t.Entries() {
		rows = append(rows, asset.TimelineEntry{Sequence: int64(i), Data: timeline.Encode(e)})
		if e.Segment != nil {
			segments++
		}
		if segments == opening {
			break
		}
	}
	renditions, long := measure.Renditions(t), t.Duration().Seconds()
	facts := measure.Facts(a, renditions, long)
	err := w.opt.Assets.Grow(ctx, a.ID, asset.Growth{
		Entries: rows, Facts: &facts, Tracks: measure.Tracks(renditions, long),
	}, w.opt.Now())
	if fault.Is(err, fault.NotFound) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("record beginning: %w", err)
	}
	return nil
}

// tried refuses a stored file that is played as it is, and of which nothing can be decoded.
func (w *Worker) tried(ctx context.Context, a asset.Asset, t *timeline.Timeline) error {
	if ok, err := w.beginningDecodes(ctx, a, t); ok || err != nil {
		return err
	}
	path := w.path(a.ID)
	if err := w.bring(ctx, objectkey.SourceFile(a.Media), path); err != nil {
		return err
	}
	return w.inspector.decodes(ctx, path, encode.MOV, leading(t), 0)
}

// leading is the kind of track by which it is told whether a file can be decoded.
func leading(t *timeline.Timeline) encode.Kind {
	if t.Rendition(timeline.MainVideo) == nil {
		return encode.Audio
	}
	return encode.Video
}
