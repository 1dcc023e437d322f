package ingest

import (
	"context"
	"io"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/worker/attempt"
)

// clip makes an asset that plays an excerpt of another one's segments where they are, with its tracks.
func (w *Worker) clip(ctx context.Context, a asset.Asset, in assetopt.Input) error {
	if err := w.report.found(ctx, a, asset.InputInfo{Settings: in}); err != nil {
		return err
	}
	s, err := w.clipper.Find(ctx, a, in)
	if err != nil {
		return err
	}
	if a.Options.Test {
		return w.testClip(ctx, a, in, func() (io.Reader, error) { return w.clipper.File(ctx, a, s, asset.TestLength) })
	}
	f, err := w.clipper.Make(ctx, a, in, s)
	if err != nil {
		return err
	}
	return orGone(w.opt.Assets.Finish(ctx, a.ID, f, w.opt.Now()))
}

// testClip makes a test asset of an excerpt of another one: it can't play the source's segments, because its picture
// carries the mark. The excerpt becomes a file in the scratch folder, which is taken like one that was fetched.
func (w *Worker) testClip(
	ctx context.Context, a asset.Asset, in assetopt.Input, excerpt func() (io.Reader, error),
) error {
	if err := w.overlays.fetch(ctx, a); err != nil {
		return err
	}
	f, err := excerpt()
	if err != nil {
		return err
	}
	path := w.path(a.ID)
	if err = attempt.Write(path, f); err != nil {
		return err
	}
	if err = w.accept(ctx, a, in, path); err != nil {
		return err
	}
	return w.discard(a.ID)
}
