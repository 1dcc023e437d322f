package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/fetch"
	"millrace/internal/media/container/sniff"
	"millrace/internal/media/encode"
	"millrace/internal/storage/blob"
)

// downloaded is how much of the progress the download is, in percent; the rest is for what has to be rewritten.
const downloaded = 80

// file makes the asset of a file by URL.
func (w *Worker) file(ctx context.Context, a asset.Asset, in assetopt.Input) error {
	if done, err := w.stored(ctx, a, in); done || err != nil {
		return err
	}
	if err := w.fetchOverlays(ctx, a); err != nil {
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
	key := sourceKey(a.Media)
	info, err := w.opt.Store.Stat(ctx, key)
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			return false, nil
		}
		return false, err
	}
	r, err := blob.ReaderAt(ctx, w.opt.Store, key, info.Size)
	if err != nil {
		return false, err
	}
	defer func() { _ = r.Close() }() // it was only read
	p, err := w.plan(ctx, a, in, r, info.Size)
	if err != nil {
		return false, err
	}
	return true, errors.Join(w.finish(ctx, a, p), w.discard(a.ID))
}

// download fetches the file. It ends when the asset is deleted meanwhile.
func (w *Worker) download(ctx context.Context, a asset.Asset, in assetopt.Input, path string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var told time.Time
	progress := func(done, total int64) {
		now := w.opt.Now()
		if now.Sub(told) < time.Second {
			return
		}
		told = now
		percent := 0.0
		if total > 0 {
			percent = downloaded * float64(done) / float64(total)
		}
		if err := w.tell(ctx, a, percent); errors.Is(err, errGone) {
			cancel(err)
		}
	}
	_, err := w.opt.Fetch.Download(ctx, in.URL, path, fetch.Limits{MaxBytes: w.opt.MaxSize}, progress)
	if err != nil && errors.Is(context.Cause(ctx), errGone) {
		return errGone
	}
	return err
}

// tell shows how far the work is; errGone when the asset is not there any more.
func (w *Worker) tell(ctx context.Context, a asset.Asset, percent float64) error {
	p := asset.Progress{State: asset.Ingesting, Percent: math.Floor(min(percent, 99))}
	err := w.opt.Assets.SetProgress(ctx, a.ID, p, w.opt.Now())
	if err != nil && fault.KindOf(err) == fault.NotFound {
		return errGone
	}
	if err != nil {
		w.opt.Logger.DebugContext(ctx, "tell progress", "asset_id", a.ID, "error", err)
	}
	return nil
}

// accept makes the asset of a downloaded file.
func (w *Worker) accept(ctx context.Context, a asset.Asset, in assetopt.Input, path string) error {
	f, err := os.Open(path) //nolint:gosec // our own scratch file
	if err != nil {
		return fmt.Errorf("open download: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at download: %w", err)
	}
	if st.Size() == 0 {
		return fault.New(fault.Invalid, "the file is empty")
	}
	format, err := sniff.Read(f)
	if err != nil {
		return fmt.Errorf("read download: %w", err)
	}
	switch format { //nolint:exhaustive // all others that are read go the same way
	case sniff.MP4:
		return w.mp4(ctx, a, in, f, path)
	case sniff.ADTS:
		return w.bareSound(ctx, a, in, path)
	default:
		if format.Demuxer() != "" {
			return w.rewrite(ctx, a, in, path, format, nil)
		}
	}
	info := asset.InputInfo{Settings: in}
	info.File.ContainerFormat = containerName(format)
	if err := w.found(ctx, a, info); err != nil {
		return err
	}
	return fault.New(fault.Invalid, "%s", refusal(format))
}

// bareSound puts AAC without a container into one, unless it can't stay as it is.
func (w *Worker) bareSound(ctx context.Context, a asset.Asset, in assetopt.Input, path string) error {
	info, err := w.opt.Desk.Probe(ctx, w.opt.Engine, path, encode.ADTS)
	if err != nil {
		return err
	}
	if a.Options.NormalizeAudio || slices.ContainsFunc(info.Tracks, func(t encode.Track) bool { return t.Channels > 2 }) {
		return w.rewrite(ctx, a, in, path, sniff.ADTS, nil)
	}
	if err = w.found(ctx, a, describe(in, sniff.ADTS, info)); err != nil {
		return err
	}
	made := sound(path)
	if err = w.opt.Engine.EncodeAudio(ctx, encode.AudioArgs{Input: path, Format: encode.ADTS, Output: made, Copy: true}, nil); err != nil {
		return err
	}
	f, err := os.Open(made) //nolint:gosec // our own scratch file
	if err != nil {
		return fmt.Errorf("open sound: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	return w.takeOver(ctx, a, nil, f, made)
}

// sound is the name beside a download for the file that its bare AAC is put into.
func sound(path string) string { return path + ".m4a" }

// found stores what is in the first input; of the others, which become tracks, it is shown what was asked for.
func (w *Worker) found(ctx context.Context, a asset.Asset, first asset.InputInfo) error {
	all := []asset.InputInfo{first}
	for _, in := range a.Options.Inputs[1:] {
		all = append(all, asset.InputInfo{Settings: in})
	}
	err := w.opt.Assets.SetInputInfo(ctx, a.ID, all, w.opt.Now())
	if err != nil && fault.KindOf(err) == fault.NotFound {
		return errGone
	}
	if err != nil {
		return err
	}
	return canOverlay(a, first)
}
