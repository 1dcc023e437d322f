// Package expire performs the job asset.expire: it deletes a test asset whose lifetime is over.
package expire

import (
	"context"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/worker/attempt"
)

// Assets is what it asks of assets; asset.Work fits.
type Assets interface {
	Expire(ctx context.Context, a id.Asset, now time.Time) error
}

// Worker does asset.expire.
type Worker struct {
	Assets Assets
	Now    func() time.Time
}

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobExpire, MaxAttempts: 100, Timeout: 10 * time.Minute, Work: w.work}
}

// recording is how long to wait for a broadcast that is not over yet.
const recording = time.Minute

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.ExpireArgs](j)
	if err != nil {
		return err
	}
	err = w.Assets.Expire(ctx, args.Asset, w.Now())
	if fault.Is(err, fault.Conflict) {
		return job.Snooze(recording)
	}
	return attempt.IgnoreAbsent(err) // deleted by its owner
}
