// Package master performs the job asset.master: it makes one file of an asset's best renditions for its owner, and
// deletes it when its time is over. It must never know HTTP serving or SQL. It starts no goroutine.
package master

import (
	"context"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/media/download"
	"millrace/internal/media/objectkey"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/assetfile"
	"millrace/internal/worker/attempt"
)

// Worker does asset.master.
type Worker struct {
	Assets  asset.FileMaker
	Store   blob.Store
	Footage assetfile.FootageSource
	Now     func() time.Time
}

const attempts = 8

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobMaster, MaxAttempts: attempts, Timeout: 12 * time.Hour, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.MasterArgs](j)
	if err != nil {
		return err
	}
	drop := func(ctx context.Context, a asset.Asset) error {
		return assetfile.DropFile(ctx, w.Store, w.Assets, a.Media, args.File)
	}
	return attempt.Task[*asset.Master]{
		Assets: w.Assets, Asset: args.Asset, Media: args.Media, Cannot: "the master can't be made",
		Find: func(a asset.Asset) (*asset.Master, attempt.State) {
			switch m := a.Master; {
			case m == nil || m.ID != args.File:
				return nil, attempt.Gone
			case m.Status == asset.FilePreparing:
				return m, attempt.Wanted
			}
			return a.Master, attempt.Ended
		},
		Work: w.attempt, Drop: drop,
		Clear: func(ctx context.Context, a asset.Asset, m *asset.Master) error {
			if m.Status != asset.FileReady {
				return drop(ctx, a)
			}
			if left := m.Expires.Sub(w.Now()); left > 0 {
				return job.Snooze(left)
			}
			return attempt.IgnoreAbsent(w.Assets.MasterOver(ctx, a.ID, m.ID, w.Now()))
		},
		Fail: func(ctx context.Context, a asset.Asset, m *asset.Master, _ asset.Errors) error {
			if err := w.Assets.MasterFailed(ctx, a.ID, m.ID, w.Now()); err != nil {
				return err
			}
			return drop(ctx, a)
		},
	}.Do(ctx, j)
}

// attempt makes the file.
func (w *Worker) attempt(ctx context.Context, a asset.Asset, m *asset.Master) error {
	footage, err := w.Footage.Footage(ctx, a, download.Want{Original: true})
	if err != nil {
		return err
	}
	if _, err := assetfile.WriteDownload(ctx, w.Store, objectkey.File(a.Media, m.ID, "mp4"), footage); err != nil {
		return err
	}
	return w.Assets.MasterReady(ctx, a.ID, m.ID, w.Now())
}
