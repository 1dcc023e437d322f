package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/encode"
	"millrace/internal/media/timeline"
)

// report tells the owner of an asset, in the asset itself, what is in its file, what is wrong with it and how far the
// work is. Each is errGone when the asset is not there any more.
type report struct {
	assets asset.Ingester
	now    func() time.Time
	log    *slog.Logger
}

// progress shows how far the work is; errGone when the asset is not there any more.
func (r *report) progress(ctx context.Context, a asset.Asset, percent float64) error {
	p := asset.Progress{State: asset.Ingesting, Percent: math.Floor(min(percent, 99))}
	err := r.assets.SetProgress(ctx, a.ID, p, r.now())
	if fault.Is(err, fault.NotFound) {
		return errGone
	}
	if err != nil {
		r.log.DebugContext(ctx, "tell progress", "asset_id", a.ID, "error", err)
	}
	return nil
}

// found stores what is in the first input; of the others, which become tracks, it is shown what was asked for.
func (r *report) found(ctx context.Context, a asset.Asset, first asset.InputInfo) error {
	all := []asset.InputInfo{first}
	for _, in := range a.Options.Inputs[1:] {
		all = append(all, asset.InputInfo{Settings: in})
	}
	err := r.assets.SetInputInfo(ctx, a.ID, all, r.now())
	if fault.Is(err, fault.NotFound) {
		return errGone
	}
	if err != nil {
		return err
	}
	return canOverlay(a, first)
}

// cutOff tells the owner of a file that ends before it says, in seconds of what can be read of it or in bytes.
func (r *report) cutOff(ctx context.Context, a asset.Asset, path string, says, is float64) error {
	if says-is >= max(shorterBy, shorter*says) {
		return r.warn(ctx, a, asset.InputTruncated, fmt.Sprintf(
			"the file says that it lasts %.3f seconds, and what can be read of it ends after %.3f: "+
				"its end is missing, or it is damaged", says, is))
	}
	missing, err := lacks(path)
	if err != nil || missing == 0 {
		return err
	}
	return r.warn(ctx, a, asset.InputTruncated,
		fmt.Sprintf("the file says that it has %d bytes more than there are: its end is missing", missing))
}

// endsInFragment tells the owner of an MP4 that ends inside of a fragment.
func (r *report) endsInFragment(ctx context.Context, a asset.Asset, f *mp4.File) error {
	if !f.Truncated {
		return nil
	}
	return r.warn(ctx, a, asset.InputTruncated,
		"the file ends inside of a fragment, its end is missing: the asset has what is whole of it")
}

// missing tells the owner of a file of which a whole track could not be decoded; where nothing could, the file is
// refused. Video without a decoder was refused before.
func (r *report) missing(ctx context.Context, a asset.Asset, c *conform, t *timeline.Timeline) error {
	if c.unsupported != nil && len(t.Renditions) > 0 {
		return r.warn(ctx, a, asset.InputUndecodable,
			fmt.Sprintf("the file's audio is %s, which is not supported: the asset has none", titleOf(c.unsupported)))
	}
	var missing encode.Kind
	switch {
	case c.video != nil && t.Rendition(timeline.MainVideo) == nil:
		missing = encode.Video
	case c.audio != nil && t.Rendition(timeline.MainAudio) == nil:
		missing = encode.Audio
	default:
		return nil
	}
	if len(t.Renditions) == 0 {
		return undecodable(missing)
	}
	return r.warn(ctx, a, asset.InputUndecodable,
		fmt.Sprintf("nothing of the file's %s can be decoded: the asset has none", missing))
}

func (r *report) warn(ctx context.Context, a asset.Asset, kind, message string) error {
	return orGone(r.assets.Warn(ctx, a.ID, asset.Warning{Type: kind, Message: message}, r.now()))
}

// leftOut tells the owner of a file whose pictures have gaps.
func (r *report) leftOut(ctx context.Context, a asset.Asset, pictures int) error {
	if pictures == 0 {
		return nil
	}
	return r.warn(ctx, a, asset.InputDamaged,
		fmt.Sprintf("pictures of the file are damaged: %d were left out, each up to the next key frame", pictures))
}

// unusual stores why a file is not taken as it is.
func (r *report) unusual(ctx context.Context, a asset.Asset, n asset.NonStandard) error {
	if n == (asset.NonStandard{}) {
		return nil
	}
	return orGone(r.assets.SetNonStandard(ctx, a.ID, n, r.now()))
}
