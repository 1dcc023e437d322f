// Package master does the job asset.master: the best there is of an asset becomes one file for its owner, which is taken away again when
// its time is over. It must never know HTTP serving or SQL. It starts no goroutine.
package master

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/download"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/settle"
)

// Films say what a file is made of.
type Films interface {
	Footage(ctx context.Context, a asset.Asset, want download.Want) (download.Footage, error)
}

// Worker does asset.master.
type Worker struct {
	Assets asset.Work
	Store  blob.Store
	Films  Films
	Now    func() time.Time
}

const attempts = 8

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobMaster, MaxAttempts: attempts, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.MasterArgs](j)
	if err != nil {
		return err
	}
	a, err := w.Assets.Find(ctx, args.Asset)
	if err != nil {
		return settle.Gone(err) // its purge takes everything
	}
	m := a.Master
	switch {
	case m == nil || m.ID != args.File:
		return nil
	case m.Status == asset.FilePreparing:
		return w.settled(ctx, a, m.ID, w.attempt(ctx, a, m.ID, j), j)
	case m.Status == asset.FileReady && w.Now().Before(m.Expires):
		return job.Snooze(m.Expires.Sub(w.Now()))
	case m.Status != asset.FileReady:
		return nil
	}
	return settle.Gone(w.Assets.MasterOver(ctx, a.ID, m.ID, w.Now()))
}

// attempt makes the file. A panic is an error, so that the file gets an end.
func (w *Worker) attempt(ctx context.Context, a asset.Asset, f id.StaticRendition, j job.Job) (err error) {
	if j.MaxAttempts > 0 && j.Attempt >= 2*j.MaxAttempts { // the queue gives up now
		return fault.New(fault.Invalid, "the master can't be made: the service ended each time it tried")
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("making of a master panicked: %v", p)
		}
	}()
	footage, err := w.Films.Footage(ctx, a, download.Want{Original: true})
	if err != nil {
		return err
	}
	if _, err := settle.File(ctx, w.Store, settle.FileKey(a.Media, f, "mp4"), footage); err != nil {
		return err
	}
	return w.Assets.MasterReady(ctx, a.ID, f, w.Now())
}

// settled ends the master in an error when nothing will be tried again.
func (w *Worker) settled(ctx context.Context, a asset.Asset, f id.StaticRendition, err error, j job.Job) error {
	switch {
	case err == nil:
		return nil
	case fault.KindOf(err) == fault.NotFound && w.gone(ctx, a, f):
		if err = w.Store.Delete(ctx, settle.FileKey(a.Media, f, "mp4")); err != nil {
			return fmt.Errorf("delete master that is gone: %w", err)
		}
		return settle.Abandon(ctx, w.Store, w.Assets, a.Media)
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return err // stopped: the job is taken up again
	case !fault.Permanent(err) && !j.Last():
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(err, settle.Gone(w.Assets.MasterFailed(ctx, a.ID, f, w.Now())))
}

// gone says that the master is not wanted any more, or its asset is deleted.
func (w *Worker) gone(ctx context.Context, a asset.Asset, f id.StaticRendition) bool {
	now, err := w.Assets.Find(ctx, a.ID)
	if err != nil {
		return fault.KindOf(err) == fault.NotFound
	}
	return now.Master == nil || now.Master.ID != f
}
