// Package ingest performs the job asset.ingest: it turns a file at a URL, or an excerpt of another asset, into a
// playable asset. It must never know HTTP serving or SQL. It starts no goroutine.
package ingest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/fetch"
	"millrace/internal/id"
	"millrace/internal/media/encode"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/overlay"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/assetfile"
	"millrace/internal/worker/attempt"
	"millrace/internal/worker/clipping"
)

// Options is what a Worker needs.
type Options struct {
	Assets       asset.Ingester
	Store        blob.Store
	Fetch        *fetch.Client
	Engine       *encode.Engine
	Library      *ondemand.Library    // of stored files, for clips of them
	Scratch      string               // folder for downloads, on the storage's filesystem if that is a folder
	MaxSize      int64                // of a file, bytes
	Mark         overlay.Layer        // what test assets get
	ProbeLimiter attempt.ProbeLimiter // where files are looked into
	Now          func() time.Time
	Logger       *slog.Logger
}

// Worker does asset.ingest.
type Worker struct {
	opt       Options
	files     attempt.Scratch
	clipper   clipping.Clipper
	report    *report
	overlays  *overlays
	inspector *inspector
}

// New returns a Worker.
func New(o Options) *Worker {
	files := attempt.NewScratch(o.Scratch, "asset-")
	report := &report{assets: o.Assets, now: o.Now, log: o.Logger}
	images := &overlays{client: o.Fetch, engine: o.Engine, mark: o.Mark, files: files}
	return &Worker{
		opt: o, files: files, report: report, overlays: images,
		clipper: clipping.Clipper{
			Assets: o.Assets, Store: o.Store, Library: o.Library, Encoder: o.Engine, Now: o.Now,
		},
		inspector: &inspector{
			engine:   o.Engine,
			limiter:  o.ProbeLimiter,
			store:    o.Store,
			report:   report,
			overlays: images,
		},
	}
}

// attempts take about two hours, as the queue waits 2 s, 10 s, 30 s, 2 min, 10 min, 30 min and an hour between them: a
// machine that is busy, or storage that is away, is no reason to refuse a file. Where the input's host can't be reached
// there are outside of them, in three minutes.
const attempts, outside = 8, 5

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobIngest, MaxAttempts: attempts, Timeout: 24 * time.Hour, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.IngestArgs](j)
	if err != nil {
		return err
	}
	return attempt.Task[assetopt.Input]{
		Assets: w.opt.Assets, Asset: args.Asset, Media: args.Media, Outside: outside,
		Cannot: "the file can't be processed", Failed: "the input could not be ingested",
		Find: func(a asset.Asset) (in assetopt.Input, is attempt.State) {
			if len(a.Options.Inputs) == 0 || a.Status == asset.Ready || a.Status == asset.Errored {
				return in, attempt.Ended
			}
			return a.Options.Inputs[0], attempt.Wanted
		},
		Work: w.attempt, Drop: w.gone,
		Clear: func(ctx context.Context, a asset.Asset, _ assetopt.Input) error {
			switch { // its process may have died before it had cleared up
			case len(a.Options.Inputs) == 0:
			case a.Status == asset.Errored:
				return w.clear(ctx, a)
			case a.Origin == asset.FromUpload:
				return errors.Join(w.discard(a.ID), w.dropUpload(ctx, a))
			}
			return nil
		},
		Fail: func(ctx context.Context, a asset.Asset, _ assetopt.Input, why asset.Errors) error {
			if err := w.opt.Assets.Fail(ctx, a.ID, why, w.opt.Now()); err != nil {
				return err
			}
			return w.clear(ctx, a)
		},
	}.Do(ctx, j)
}

// attempt makes the asset.
func (w *Worker) attempt(ctx context.Context, a asset.Asset, in assetopt.Input) error {
	if _, clip := assetopt.ClipSource(in.URL); clip {
		return w.clip(ctx, a, in)
	}
	if a.Origin == asset.FromUpload {
		return w.uploaded(ctx, a, in)
	}
	return w.file(ctx, a, in)
}

// errGone says that the asset was deleted while it was made.
var errGone = errors.New("the asset was deleted")

// orGone is errGone where err says that there is no such asset.
func orGone(err error) error {
	if fault.Is(err, fault.NotFound) {
		return errGone
	}
	return err
}

// gone removes what there is of an asset that was deleted, but for what clips of it play.
func (w *Worker) gone(ctx context.Context, a asset.Asset) error {
	return errors.Join(w.discard(a.ID), assetfile.Abandon(ctx, w.opt.Store, w.opt.Assets, a.Media))
}

// clear removes what there is of an asset of which nothing can be played.
func (w *Worker) clear(ctx context.Context, a asset.Asset) error {
	return errors.Join(w.discard(a.ID), assetfile.Clear(ctx, w.opt.Store, objectkey.Media(a.Media)))
}

// path is where an asset's download goes; a later attempt continues what is there.
func (w *Worker) path(a id.Asset) string { return w.files.File(string(a)) }

// discard removes what an asset has in the scratch folder.
func (w *Worker) discard(a id.Asset) error {
	return errors.Join(attempt.Discard(sound(w.path(a))), fetch.Discard(w.path(a)), discardImages(w.path(a)))
}

// Tidy removes what earlier processes have left in the scratch folder of assets that are not being made any more. It is
// called before the first job.
func (w *Worker) Tidy(ctx context.Context) error {
	return w.files.Tidy(ctx, func(ctx context.Context, name string) (bool, error) {
		a, err := w.opt.Assets.Find(ctx, id.Asset(name))
		return err == nil && a.Status == asset.Preparing, attempt.IgnoreAbsent(err)
	})
}
