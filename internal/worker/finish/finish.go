// Package finish does the job asset.finish: a broadcast is over, its segments are stored; their record becomes the asset's index.
package finish

import (
	"context"
	"fmt"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
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
	return job.Handler{Kind: asset.JobFinish, MaxAttempts: 100, Timeout: time.Hour, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.FinishArgs](j)
	if err != nil {
		return err
	}
	a, err := w.Assets.Find(ctx, args.Asset)
	if settle.Absent(err) { // deleted meanwhile, maybe before its index came
		return settle.Abandon(ctx, w.Store, w.Assets, args.Media)
	}
	if err != nil || a.Index != "" || a.Status == asset.Errored || a.IsLive { // the end of what is live asks again
		return err
	}
	return w.ending(a).Of(ctx, j, settle.Try(j, "the recording can't be completed", func() error { return w.attempt(ctx, a) }))
}

func (w *Worker) attempt(ctx context.Context, a asset.Asset) error {
	t, err := settle.Timeline(ctx, w.Store, w.Assets, a)
	if err != nil {
		return fmt.Errorf("read timeline of %s: %w", a.ID, err)
	}
	f, err := settle.Write(ctx, w.Store, a, t)
	if err != nil {
		return err
	}
	return w.Assets.Finish(ctx, a.ID, f, w.Now())
}

// ending of a recording that nobody has seen yet is an error. One that plays goes on doing so from its entries, without files to download;
// no recorded segment is deleted.
func (w *Worker) ending(a asset.Asset) settle.Ending {
	why := func(text string) asset.Errors { return asset.Errors{Type: "invalid_input", Messages: []string{text}} }
	return settle.Ending{
		Gone: func(ctx context.Context) (bool, error) {
			_, err := w.Assets.Find(ctx, a.ID)
			return settle.Absent(err), settle.Gone(err)
		},
		Drop: func(ctx context.Context) error { return settle.Abandon(ctx, w.Store, w.Assets, a.Media) },
		Fail: func(ctx context.Context, _ error) error {
			if a.Status == asset.Preparing {
				return w.Assets.Fail(ctx, a.ID, why("the recording could not be completed; the service's log says why"), w.Now())
			}
			return w.Assets.FailFiles(ctx, a.ID, why("the recording that the file is made of could not be completed; the service's log says why"), w.Now())
		},
	}
}
