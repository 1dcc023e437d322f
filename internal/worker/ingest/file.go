package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/fetch"
	"millrace/internal/media/encode"
	"millrace/internal/media/objectkey"
	"millrace/internal/storage/blob"
)

// downloaded is how much of the progress the download is, in percent; the rest is for what has to be rewritten.
const downloaded = 80

// file makes the asset of a file by URL.
func (w *Worker) file(ctx context.Context, a asset.Asset, in assetopt.Input) error {
	if done, err := w.stored(ctx, a, in); done || err != nil {
		return err
	}
	if err := w.overlays.fetch(ctx, a); err != nil {
		return err
	}
	path := w.path(a.ID)
	if _, err := os.Stat(path); err != nil { // not downloaded by an earlier attempt
		if err := w.download(ctx, a, in, path); err != nil {
			return err
		}
	}
	if err := w.accept(ctx, a, in, path); err != nil {
		return err
	}
	return w.discard(a.ID)
}

// stored goes on where an earlier attempt had its file in the store already.
func (w *Worker) stored(ctx context.Context, a asset.Asset, in assetopt.Input) (bool, error) {
	key := objectkey.SourceFile(a.Media)
	info, err := w.opt.Store.Stat(ctx, key)
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			return false, nil
		}
		return false, err
	}
	r, err := blob.ReaderAt(ctx, w.opt.Store, key, info.Size)
	if err != nil {
		return false, err
	}
	defer func() { _ = r.Close() }() // it was only read
	t, u, err := w.inspector.adoptable(ctx, a, in, r, info.Size)
	if err == nil && u.rewrite {
		err = errors.New("a file that was stored as it is can't be played from its byte ranges")
	}
	if err != nil {
		return false, err
	}
	if err = w.tried(ctx, a, t); err != nil {
		return false, err
	}
	return true, errors.Join(w.finish(ctx, a, t), w.discard(a.ID))
}

// download fetches the file. It ends when the asset is deleted meanwhile.
func (w *Worker) download(ctx context.Context, a asset.Asset, in assetopt.Input, path string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var reported time.Time
	progress := func(done, total int64) {
		now := w.opt.Now()
		if now.Sub(reported) < time.Second {
			return
		}
		reported = now
		percent := 0.0
		if total > 0 {
			percent = downloaded * float64(done) / float64(total)
		}
		if err := w.report.progress(ctx, a, percent); errors.Is(err, errGone) {
			cancel(err)
		}
	}
	_, err := w.opt.Fetch.Download(ctx, in.URL, path, fetch.Limits{MaxBytes: w.opt.MaxSize}, progress)
	if err != nil && errors.Is(context.Cause(ctx), errGone) {
		return errGone
	}
	return err
}

// accept makes the asset of a downloaded file.
func (w *Worker) accept(ctx context.Context, a asset.Asset, in assetopt.Input, path string) error {
	p, err := w.inspector.decide(ctx, a, in, path)
	if err != nil {
		return err
	}
	w.opt.Logger.DebugContext(ctx, "ingest of file", "asset_id", a.ID, "action", p.action)
	if p.action == toAdopt {
		return w.adopt(ctx, a, &p)
	}
	return w.rewrite(ctx, a, &p)
}

// adopt moves a file into the store and makes the asset ready: nothing of it is copied or encoded. In a folder that
// takes no time, so that its beginning is played while its decoder is tried.
func (w *Worker) adopt(ctx context.Context, a asset.Asset, p *plan) error {
	_, local := w.opt.Store.(blob.Local)
	early := local && !p.texts
	if !early {
		if err := w.inspector.decodes(ctx, p.path, encode.MOV, leading(p.timeline), 0); err != nil {
			return err
		}
	}
	var texts []asset.Track
	if p.texts {
		info, err := w.opt.ProbeLimiter.Probe(ctx, w.opt.Engine, p.path, encode.MOV)
		if err != nil {
			return err
		}
		if texts, err = w.embedded(ctx, a, p.path, encode.MOV, info.Tracks); err != nil {
			return err
		}
	}
	if err := w.opt.Store.Adopt(ctx, objectkey.SourceFile(a.Media), p.path); err != nil {
		return fmt.Errorf("store upload: %w", err)
	}
	if early {
		if err := w.open(ctx, a, p.timeline); err != nil {
			return err
		}
		if err := w.tried(ctx, a, p.timeline); err != nil {
			return err
		}
	}
	return w.finish(ctx, a, p.timeline, texts...)
}
