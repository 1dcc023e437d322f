// Package finish does the job asset.finish: a broadcast is over, its segments are stored; their record becomes the asset's index.
package finish

import (
	"context"
	"fmt"
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
	if err != nil {
		return settle.Gone(err) // deleted meanwhile
	}
	if a.Index != "" || a.Status == asset.Errored {
		return nil
	}
	t, err := settle.Timeline(ctx, w.Store, w.Assets, a)
	if err != nil {
		return fmt.Errorf("read timeline of %s: %w", a.ID, err)
	}
	f, err := settle.Write(ctx, w.Store, a.Media, t)
	if err != nil {
		return err
	}
	err = w.Assets.Finish(ctx, a.ID, f, w.Now())
	if err != nil && fault.KindOf(err) == fault.NotFound { // the index came too late for the purge
		return settle.Abandon(ctx, w.Store, w.Assets, a.Media)
	}
	return err
}
