// Package ingest does the job asset.ingest: a file by URL, or a stretch of another asset, becomes a playable asset.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/fetch"
	"millrace/internal/media/encode"
	"millrace/internal/storage/blob"
)

// Options is what a Worker needs.
type Options struct {
	Assets  asset.Work
	Store   blob.Store
	Fetch   *fetch.Client
	Engine  *encode.Engine
	Scratch string // folder for downloads, on the storage's filesystem if that is a folder
	MaxSize int64  // of a file, bytes
	Now     func() time.Time
	Logger  *slog.Logger
}

// Worker does asset.ingest.
type Worker struct{ opt Options }

// New returns a Worker.
func New(o Options) *Worker { return &Worker{opt: o} }

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobIngest, MaxAttempts: 8, Timeout: 24 * time.Hour, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.IngestArgs](j)
	if err != nil {
		return err
	}
	a, err := w.opt.Assets.Find(ctx, args.Asset)
	if err != nil {
		return gone(err)
	}
	if a.Status != asset.Preparing || len(a.Options.Inputs) == 0 {
		return nil
	}
	in := a.Options.Inputs[0]
	if _, clip := assetopt.ClipSource(in.URL); clip {
		err = w.clip(ctx, a, in)
	} else {
		err = w.file(ctx, a, in)
	}
	return w.settled(ctx, a, err, j.Last())
}

func gone(err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// settled errors the asset when the input is at fault, or on the last attempt.
func (w *Worker) settled(ctx context.Context, a asset.Asset, err error, last bool) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if !fault.Permanent(err) && !last {
		return err
	}
	messages := fault.Messages(err)
	if len(messages) == 0 {
		messages = []string{"the input could not be ingested; the service's log says why"}
	}
	failed := w.opt.Assets.Fail(ctx, a.ID, asset.Errors{Type: "invalid_input", Messages: messages}, w.opt.Now())
	return errors.Join(err, gone(failed))
}

// file downloads and takes over a media file.
func (w *Worker) file(ctx context.Context, a asset.Asset, in assetopt.Input) error {
	path := filepath.Join(w.opt.Scratch, "asset-"+string(a.ID))
	if _, err := w.opt.Fetch.Download(ctx, in.URL, path, fetch.Limits{MaxBytes: w.opt.MaxSize}, w.progress(ctx, a)); err != nil {
		return err
	}
	err := w.accept(ctx, a, in, path)
	if err == nil || fault.Permanent(err) {
		_ = os.Remove(path) // it has moved when all went well
	}
	return err
}

// progress tells how far the download is, once a second.
func (w *Worker) progress(ctx context.Context, a asset.Asset) func(done, total int64) {
	var told time.Time
	return func(done, total int64) {
		now := w.opt.Now()
		if total <= 0 || now.Sub(told) < time.Second {
			return
		}
		told = now
		percent := math.Floor(100 * float64(done) / float64(total))
		if err := w.opt.Assets.SetProgress(ctx, a.ID, asset.Progress{State: asset.Ingesting, Percent: percent}, now); err != nil {
			w.opt.Logger.Debug("tell progress", "asset_id", a.ID, "error", err)
		}
	}
}

// accept makes the asset of a downloaded file.
func (w *Worker) accept(ctx context.Context, a asset.Asset, in assetopt.Input, path string) error {
	format, err := sniff(path)
	if err != nil {
		return err
	}
	info, err := w.opt.Engine.Probe(ctx, path, format)
	if err != nil {
		return err
	}
	if err := w.opt.Assets.SetInputInfo(ctx, a.ID, []asset.InputInfo{inputInfo(in, info)}, w.opt.Now()); err != nil {
		return gone(err)
	}
	if err := playable(info); err != nil {
		return err
	}
	if format != encode.MOV {
		if path, err = w.rewrite(ctx, path, format); err != nil {
			return err
		}
		defer func() { _ = os.Remove(path) }() // it has moved when all went well
	}
	return w.takeOver(ctx, a, path)
}

func sniff(path string) (encode.Format, error) {
	f, err := os.Open(path) //nolint:gosec // our own scratch file
	if err != nil {
		return "", fmt.Errorf("open download: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	head := make([]byte, encode.SniffSize)
	n, err := f.ReadAt(head, 0)
	if n == 0 {
		return "", fault.Wrap(fault.Invalid, err, "the file is empty")
	}
	format, ok := encode.Sniff(head[:n])
	if !ok {
		return "", fault.New(fault.Invalid, "%s", unknownFile(head[:n]))
	}
	return format, nil
}

// rewrite puts the packets of another container into a fragmented MP4 beside it.
func (w *Worker) rewrite(ctx context.Context, path string, format encode.Format) (string, error) {
	out := path + ".mp4"
	f, err := os.Create(out) //nolint:gosec // our own scratch file
	if err != nil {
		return "", fmt.Errorf("create rewritten file: %w", err)
	}
	err = w.opt.Engine.Rewrite(ctx, encode.RewriteArgs{Input: path, Format: format}, func(_ context.Context, mp4 io.Reader) error {
		_, err := io.Copy(f, mp4)
		return err
	})
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(out))
	}
	return out, nil
}
