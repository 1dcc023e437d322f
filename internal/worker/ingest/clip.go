package ingest

import (
	"context"
	"fmt"
	"math"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/worker/settle"
)

// clip makes an asset that plays a stretch of another one's segments where they are.
func (w *Worker) clip(ctx context.Context, a asset.Asset, in assetopt.Input) error {
	source, err := w.opt.Assets.Find(ctx, a.SourceAsset)
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			return fault.New(fault.Invalid, "inputs[0].url: the asset to clip has been deleted")
		}
		return err
	}
	t, err := settle.Timeline(ctx, w.opt.Store, w.opt.Assets, source)
	if err != nil {
		return fmt.Errorf("read timeline of %s: %w", source.ID, err)
	}
	from, to := in.ClipRange()
	whole := t.Duration().Seconds()
	if from >= whole {
		return fault.New(fault.Invalid, "inputs[0].start_time: must be before the end of the source, which lasts %.3f seconds", whole)
	}
	part := t.Slice(from, math.Min(to, whole))
	if len(part.Marks) == 0 {
		return fault.New(fault.Invalid, "inputs[0]: the clip would be empty")
	}
	f, err := settle.Write(ctx, w.opt.Store, a.Media, part)
	if err != nil {
		return err
	}
	return gone(w.opt.Assets.Finish(ctx, a.ID, f, w.opt.Now()))
}
