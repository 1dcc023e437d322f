// Package master does the job asset.master: the best there is of an asset becomes one file for its owner, which is taken away again when
// its time is over. It must never know HTTP serving or SQL. It starts no goroutine.
package master

import (
	"context"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/id"
	"millrace/internal/media/download"
	"millrace/internal/media/objectkey"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/assetfile"
	"millrace/internal/worker/attempt"
)

// FootageSource says what a file is made of.
type FootageSource interface {
	Footage(ctx context.Context, a asset.Asset, want download.Want) (download.Footage, error)
}

// Worker does asset.master.
type Worker struct {
	Assets  asset.Work
	Store   blob.Store
	Footage FootageSource
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
	a, err := w.Assets.Find(ctx, args.Asset)
	if attempt.Absent(err) {
		return assetfile.DropFile(ctx, w.Store, w.Assets, args.Media, args.File)
	}
	if err != nil {
		return err
	}
	m := a.Master
	if m == nil || m.ID != args.File {
		return assetfile.DropFile(ctx, w.Store, w.Assets, a.Media, args.File)
	}
	switch m.Status {
	case asset.FilePreparing:
		return w.ending(a, m.ID).Of(ctx, j, attempt.Run(j, "the master can't be made", func() error { return w.attempt(ctx, a, m.ID) }))
	case asset.FileReady:
		if left := m.Expires.Sub(w.Now()); left > 0 {
			return job.Snooze(left)
		}
		return attempt.IgnoreAbsent(w.Assets.MasterOver(ctx, a.ID, m.ID, w.Now()))
	case asset.FileErrored, asset.FileSkipped, asset.FilesDisabled:
	}
	return assetfile.DropFile(ctx, w.Store, w.Assets, a.Media, m.ID)
}

// attempt makes the file.
func (w *Worker) attempt(ctx context.Context, a asset.Asset, f id.StaticRendition) error {
	footage, err := w.Footage.Footage(ctx, a, download.Want{Original: true})
	if err != nil {
		return err
	}
	if _, err := assetfile.WriteDownload(ctx, w.Store, objectkey.File(a.Media, f, "mp4"), footage); err != nil {
		return err
	}
	return w.Assets.MasterReady(ctx, a.ID, f, w.Now())
}

// ending takes away what was stored of a master that is not wanted any more, or can't be made.
func (w *Worker) ending(a asset.Asset, f id.StaticRendition) attempt.Ending {
	return attempt.Ending{
		Gone: func(ctx context.Context) (bool, error) {
			now, err := w.Assets.Find(ctx, a.ID)
			return now.Master == nil || now.Master.ID != f, attempt.IgnoreAbsent(err)
		},
		Drop: func(ctx context.Context) error { return assetfile.DropFile(ctx, w.Store, w.Assets, a.Media, f) },
		Fail: func(ctx context.Context, _ error) error {
			if err := w.Assets.MasterFailed(ctx, a.ID, f, w.Now()); err != nil {
				return err
			}
			return assetfile.DropFile(ctx, w.Store, w.Assets, a.Media, f)
		},
	}
}
