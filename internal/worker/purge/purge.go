// Package purge does the job media.purge: it deletes the files of a media set that no asset needs any more, and leaves those that clips
// still play.
package purge

import (
	"context"
	"fmt"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/id"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/settle"
)

// Worker does media.purge.
type Worker struct {
	Assets asset.Work
	Store  blob.Store
}

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobPurge, MaxAttempts: 100, Work: w.work}
}

// preparing is how long to wait for a clip that is just being made of the media.
const preparing = 5 * time.Second

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.PurgeArgs](j)
	if err != nil {
		return err
	}
	users, err := w.Assets.Users(ctx, args.Media)
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, u := range users {
		if u.Media == args.Media {
			return nil // its own asset lives
		}
		if u.Status == asset.Preparing {
			return job.Snooze(preparing)
		}
		if u.Status == asset.Errored {
			continue
		}
		t, err := settle.Timeline(ctx, w.Store, w.Assets, u)
		if err != nil {
			return err
		}
		for key := range t.Objects {
			needed[key] = true
		}
	}
	return w.sweep(ctx, args.Media, needed)
}

func (w *Worker) sweep(ctx context.Context, m id.Media, needed map[string]bool) error {
	const batch = 500
	var gone []string
	flush := func() error {
		err := w.Store.Delete(ctx, gone...)
		gone = gone[:0]
		return err
	}
	for key, err := range w.Store.List(ctx, "media/"+string(m)+"/") {
		if err != nil {
			return fmt.Errorf("list media: %w", err)
		}
		if needed[key] {
			continue
		}
		if gone = append(gone, key); len(gone) == batch {
			if err := flush(); err != nil {
				return fmt.Errorf("delete media: %w", err)
			}
		}
	}
	if err := flush(); err != nil {
		return fmt.Errorf("delete media: %w", err)
	}
	return nil
}
