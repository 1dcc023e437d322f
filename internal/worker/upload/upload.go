// Package upload performs the jobs of direct uploads: upload.expire ends one whose time has passed, upload.clear
// deletes what was received of a file that nobody wants any more, and upload.fail records that no asset could be made
// of a file.
package upload

import (
	"context"
	"strings"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/worker/attempt"
)

// Files are the files that are being uploaded.
type Files interface {
	// Clear removes what there is of an upload's file, once nobody writes to it any more; a writer that is still there
	// is told to stop.
	Clear(ctx context.Context, u upload.Upload) error
}

// Worker does these jobs.
type Worker struct {
	Uploads upload.Work
	Assets  attempt.Finder
	Files   Files
	Now     func() time.Time
}

// attempts of each: storage may be away for a while.
const attempts = 100

// Handlers are their places in the queue.
func (w *Worker) Handlers() []job.Handler {
	handler := func(kind string, work func(ctx context.Context, j job.Job) error) job.Handler {
		return job.Handler{Kind: kind, MaxAttempts: attempts, Timeout: 10 * time.Minute, Work: work}
	}
	return []job.Handler{
		handler(upload.JobExpire, w.expire), handler(upload.JobClear, w.clear), handler(asset.JobUploadFail, w.fail),
	}
}

// early is how long to wait when the queue's clock is ahead of ours.
const early = time.Second

func (w *Worker) expire(ctx context.Context, j job.Job) error {
	args, err := job.Decode[upload.Args](j)
	if err != nil {
		return err
	}
	err = w.Uploads.Expire(ctx, args.Upload, w.Now())
	if fault.Is(err, fault.NotReady) {
		return job.Snooze(early)
	}
	return attempt.IgnoreAbsent(err)
}

func (w *Worker) clear(ctx context.Context, j job.Job) error {
	args, err := job.Decode[upload.Args](j)
	if err != nil {
		return err
	}
	u, err := w.Uploads.Find(ctx, args.Upload)
	if err != nil {
		return attempt.IgnoreAbsent(err)
	}
	if err := w.Files.Clear(ctx, u); err != nil {
		return err
	}
	return attempt.IgnoreAbsent(w.Uploads.Cleared(ctx, u.ID))
}

func (w *Worker) fail(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.UploadFailArgs](j)
	if err != nil {
		return err
	}
	e := upload.Error{
		Type:    "invalid_input",
		Message: "no asset could be made of the file, and it has been deleted since",
	}
	a, err := w.Assets.Find(ctx, args.Asset)
	if attempt.IgnoreAbsent(err) != nil {
		return err
	}
	if err == nil && a.Errors != nil {
		e = upload.Error{Type: a.Errors.Type, Message: strings.Join(a.Errors.Messages, "; ")}
	}
	return attempt.IgnoreAbsent(w.Uploads.Fail(ctx, args.Upload, e, w.Now()))
}
