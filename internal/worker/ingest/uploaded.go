package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/media/container/sniff"
	"millrace/internal/media/encode"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/attempt"
)

// uploaded makes the asset of a file that was uploaded, and is in the store already.
func (w *Worker) uploaded(ctx context.Context, a asset.Asset, in assetopt.Input) error {
	if err := w.overlays.fetch(ctx, a); err != nil {
		return err
	}
	if _, local := w.opt.Store.(blob.Local); !local {
		if done, err := w.inPlace(ctx, a, in); done || err != nil {
			return err
		}
	}
	path := w.path(a.ID)
	if err := w.bring(ctx, objectkey.SourceFile(a.Media), path); err != nil {
		return err
	}
	if err := w.accept(ctx, a, in, path); err != nil {
		return err
	}
	return errors.Join(w.discard(a.ID), w.dropUpload(ctx, a))
}

// bring has a stored file at path: by a second name where storage and path are on one filesystem, else by a copy.
func (w *Worker) bring(ctx context.Context, key, path string) error {
	// of an earlier attempt, perhaps not whole
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("bring upload: %w", err)
	}
	if local, ok := w.opt.Store.(blob.Local); ok {
		if from, known := local.Path(key); known && os.Link(from, path) == nil {
			return nil
		}
	}
	r, err := w.opt.Store.Get(ctx, key, 0, -1)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // our own scratch file
	if err == nil {
		_, err = io.Copy(f, r)
		err = errors.Join(err, f.Close())
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("bring upload: %w", err)
	}
	return nil
}

// inPlace makes the asset of an MP4 that needs no encoding without bringing it here; false when it has to be brought.
func (w *Worker) inPlace(ctx context.Context, a asset.Asset, in assetopt.Input) (done bool, err error) {
	key := objectkey.SourceFile(a.Media)
	info, err := w.opt.Store.Stat(ctx, key)
	if err != nil {
		return false, err
	}
	r, err := blob.ReaderAt(ctx, w.opt.Store, key, info.Size)
	if err != nil {
		return false, err
	}
	defer func() { _ = r.Close() }() // it was only read
	if format, serr := sniff.Read(r); serr != nil || format != sniff.MP4 {
		return false, serr
	}
	t, u, err := w.inspector.adoptable(ctx, a, in, r, info.Size)
	if err != nil || u.rewrite || u.texts {
		return false, err
	}
	if ok, err := w.beginningDecodes(ctx, a, t); !ok || err != nil { // perhaps what follows does
		return false, err
	}
	return true, w.finish(ctx, a, t)
}

// beginningDecodes reports whether anything of the first segment can be decoded.
func (w *Worker) beginningDecodes(ctx context.Context, a asset.Asset, t *timeline.Timeline) (ok bool, err error) {
	rendition, kind := t.Rendition(timeline.MainVideo), leading(t)
	if kind == encode.Audio {
		rendition = t.Rendition(timeline.MainAudio)
	}
	if rendition == nil || rendition.Source == nil || len(rendition.Chunks) == 0 || rendition.Chunks[0].Object != "" {
		return false, nil
	}
	head, err := w.opt.Library.Init(ctx, *rendition.Source)
	if err != nil {
		return false, err
	}
	segment, err := w.opt.Library.Chunk(ctx, *rendition.Source, t.First, rendition.Chunks[0])
	if err != nil {
		return false, err
	}
	path := w.path(a.ID) + ".beginning"
	if err = os.WriteFile(path, append(head, segment...), 0o600); err != nil {
		return false, fmt.Errorf("write first segment: %w", err)
	}
	ok, err = w.opt.Engine.Decodes(ctx, path, encode.MOV, kind, 0)
	if fault.Is(err, fault.Invalid) {
		err = nil
	}
	return ok, errors.Join(err, os.Remove(path))
}

// dropUpload removes an uploaded file that the asset does not play: it was encoded, or put into another container.
func (w *Worker) dropUpload(ctx context.Context, a asset.Asset) error {
	key := objectkey.SourceFile(a.Media)
	if _, err := w.opt.Store.Stat(ctx, key); err != nil {
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		return err
	}
	a, err := w.opt.Assets.Find(ctx, a.ID)
	if err != nil {
		return attempt.IgnoreAbsent(err)
	}
	t, err := mediastore.Timeline(ctx, w.opt.Store, w.opt.Assets, a)
	if err != nil {
		return err
	}
	for played := range t.Objects {
		if played == key {
			return nil
		}
	}
	return w.opt.Store.Delete(ctx, key)
}
