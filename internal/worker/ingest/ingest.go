// Package ingest does the job asset.ingest: a file by URL, or a stretch of another asset, becomes a playable asset.
// It must never know HTTP serving or SQL. It starts no goroutine.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/fetch"
	"millrace/internal/id"
	"millrace/internal/media/encode"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/overlay"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/settle"
)

// Options is what a Worker needs.
type Options struct {
	Assets  asset.Work
	Store   blob.Store
	Fetch   *fetch.Client
	Engine  *encode.Engine
	Library *ondemand.Library // of stored files, for clips of them
	Scratch string            // folder for downloads, on the storage's filesystem if that is a folder
	MaxSize int64             // of a file, bytes
	Mark    overlay.Layer     // what test assets get
	Now     func() time.Time
	Logger  *slog.Logger
}

// Worker does asset.ingest.
type Worker struct {
	opt      Options
	decoding sync.Mutex
}

// New returns a Worker.
func New(o Options) *Worker {
	if whole, err := filepath.Abs(o.Scratch); err == nil { // ffmpeg has a working folder of its own
		o.Scratch = whole
	}
	return &Worker{opt: o}
}

// attempts take about three minutes when the input's host can not be reached: the queue waits 2 s, 10 s, 30 s and 2 min.
const attempts = 5

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobIngest, MaxAttempts: attempts, Timeout: 24 * time.Hour, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.IngestArgs](j)
	if err != nil {
		return err
	}
	a, err := w.opt.Assets.Find(ctx, args.Asset)
	if err != nil {
		if settle.Gone(err) == nil {
			err = w.discard(args.Asset)
		}
		return err
	}
	if a.Status != asset.Preparing || len(a.Options.Inputs) == 0 {
		return nil
	}
	return w.settled(ctx, a, w.attempt(ctx, a, j), j)
}

// errDied is the end of a file that takes its process down each time.
var errDied = fault.New(fault.Invalid, "the file can't be processed: the service ended each time it tried")

// attempt makes the asset.
func (w *Worker) attempt(ctx context.Context, a asset.Asset, j job.Job) error {
	if j.MaxAttempts > 0 && j.Attempt >= 2*j.MaxAttempts { // the queue gives up now
		return errDied
	}
	return guarded(func() error {
		in := a.Options.Inputs[0]
		if _, clip := assetopt.ClipSource(in.URL); clip {
			return w.clip(ctx, a, in)
		}
		return w.file(ctx, a, in)
	})
}

// guarded makes an error of a panic: a file from outside must neither end the process nor leave its asset without an end.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("ingest panicked: %v", p)
		}
	}()
	return f()
}

// errGone says that the asset was deleted while it was made.
var errGone = errors.New("the asset was deleted")

// settled errors the asset when the input is at fault, or when nothing will be tried again.
func (w *Worker) settled(ctx context.Context, a asset.Asset, err error, j job.Job) error {
	if _, snoozed := errors.AsType[*job.SnoozeError](err); err == nil || snoozed {
		return err
	}
	if errors.Is(err, errGone) {
		return errors.Join(w.discard(a.ID), settle.Abandon(ctx, w.opt.Store, w.opt.Assets, a.Media))
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return err // stopped: the job is taken up again
	}
	if !fault.Permanent(err) && !j.Last() {
		return err
	}
	messages := settle.Reason(err, "the input could not be ingested")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	failed := w.opt.Assets.Fail(ctx, a.ID, asset.Errors{Type: "invalid_input", Messages: messages}, w.opt.Now())
	if failed == nil { // nothing of it can be played
		failed = settle.Sweep(ctx, w.opt.Store, settle.Prefix(a.Media), func(string) bool { return false })
	}
	return errors.Join(err, settle.Gone(failed), w.discard(a.ID))
}

const scratchPrefix = "asset-"

// path is where an asset's download goes; a later attempt continues what is there.
func (w *Worker) path(a id.Asset) string {
	return filepath.Join(w.opt.Scratch, scratchPrefix+string(a))
}

// discard removes what an asset has in the scratch folder.
func (w *Worker) discard(a id.Asset) error {
	err := os.Remove(sound(w.path(a)))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, fetch.Discard(w.path(a)), discardImages(w.path(a)))
}

// Tidy removes what earlier processes have left in the scratch folder of assets that are not being made any more. It is called before the
// first job.
func (w *Worker) Tidy(ctx context.Context) error {
	files, err := os.ReadDir(w.opt.Scratch)
	if err != nil {
		return fmt.Errorf("tidy downloads: %w", err)
	}
	var errs []error
	for _, f := range files {
		name, ours := strings.CutPrefix(f.Name(), scratchPrefix)
		if !ours || f.IsDir() {
			continue
		}
		name, _, _ = strings.Cut(name, ".")
		a, err := w.opt.Assets.Find(ctx, id.Asset(name))
		switch {
		case err == nil && a.Status == asset.Preparing:
		case settle.Gone(err) != nil:
			errs = append(errs, err)
		default:
			errs = append(errs, os.Remove(filepath.Join(w.opt.Scratch, f.Name())))
		}
	}
	return errors.Join(errs...)
}
