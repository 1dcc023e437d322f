// Package finish does the job asset.finish: a broadcast is over, its segments are stored; their record becomes the asset's index.
package finish

import (
	"context"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/settle"
)

// Worker does asset.finish.
type Worker struct {
	Assets asset.Work
	Store  blob.Store
	Now    func() time.Time
}

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobFinish, MaxAttempts: 100, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.FinishArgs](j)
	if err != nil {
		return err
	}
	a, err := w.Assets.Find(ctx, args.Asset)
	if fault.KindOf(err) == fault.NotFound && err != nil {
		return nil // deleted meanwhile
	}
	if err != nil || a.Index != "" {
		return err
	}
	t, err := settle.Timeline(ctx, w.Store, w.Assets, a)
	if err != nil {
		return err
	}
	f, err := settle.Write(ctx, w.Store, a.Media, t)
	if err != nil {
		return err
	}
	return w.Assets.Finish(ctx, a.ID, f, w.Now())
}
