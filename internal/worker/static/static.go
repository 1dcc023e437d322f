// Package static performs the job asset.static: it makes a file for download from an asset's renditions. What has to be
// encoded is first encoded into storage segment by segment, so that another attempt can continue where one ended; then
// the file is written in one stream. It must never know HTTP serving or SQL. It starts no goroutine.
package static

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/media/download"
	"millrace/internal/media/encode"
	"millrace/internal/media/objectkey"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/assetfile"
	"millrace/internal/worker/attempt"
)

// Encoder makes an M4A of any sound; encode.Engine fits.
type Encoder interface {
	EncodeAudio(ctx context.Context, p encode.Priority, job encode.AudioArgs, progress func(time.Duration)) error
}

// Worker does asset.static.
type Worker struct {
	Assets  asset.FileMaker
	Store   blob.Store
	Footage assetfile.FootageSource
	Encoder Encoder
	Scratch string // folder for sound that is encoded again
	// Pass is for how long a job encodes before it lets others have its place in the queue.
	Pass time.Duration
	Now  func() time.Time
}

const attempts = 8

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobStatic, MaxAttempts: attempts, Timeout: 12 * time.Hour, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.StaticArgs](j)
	if err != nil {
		return err
	}
	drop := func(ctx context.Context, a asset.Asset) error {
		return assetfile.DropFile(ctx, w.Store, w.Assets, a.Media, args.File)
	}
	return attempt.Task[asset.StaticRendition]{
		Assets: w.Assets, Asset: args.Asset, Media: args.Media,
		Cannot: "the file can't be made", Failed: "the file could not be made",
		Find: func(a asset.Asset) (f asset.StaticRendition, is attempt.State) {
			i := slices.IndexFunc(a.Static.Files, func(f asset.StaticRendition) bool { return f.ID == args.File })
			if i < 0 {
				return f, attempt.Gone
			}
			if f = a.Static.Files[i]; f.Status == asset.FilePreparing {
				return f, attempt.Wanted
			}
			return f, attempt.Ended
		},
		Work: w.attempt, Drop: drop,
		Clear: func(ctx context.Context, a asset.Asset, f asset.StaticRendition) error {
			if f.Status == asset.FileReady { // an earlier attempt may have died before it had cleared up
				return w.sweep(ctx, a, f)
			}
			return drop(ctx, a)
		},
		Fail: func(ctx context.Context, a asset.Asset, f asset.StaticRendition, why asset.Errors) error {
			if err := w.Assets.StaticFailed(ctx, a.ID, f.ID, why, w.Now()); err != nil {
				return err
			}
			return drop(ctx, a)
		},
	}.Do(ctx, j)
}

// attempt makes the file.
func (w *Worker) attempt(ctx context.Context, a asset.Asset, f asset.StaticRendition) (err error) {
	footage, err := w.Footage.Footage(ctx, a, download.Want{
		Sound: f.Sound(),
		Short: f.Short(),
		Spare: objectkey.FileParts(a.Media, f.ID),
	})
	if err != nil {
		return err
	}
	if err = w.fill(ctx, footage, w.progress(ctx, a, f)); err != nil {
		return err
	}
	if footage.EncodeAudio {
		raw, sound := w.sound(f.ID)
		defer func() { err = errors.Join(err, attempt.Discard(raw, sound)) }()
		if err = w.resound(ctx, &footage, f.ID); err != nil {
			return err
		}
	}
	made, err := assetfile.WriteDownload(ctx, w.Store, objectkey.File(a.Media, f.ID, f.Ext), footage)
	if err != nil {
		return err
	}
	f.Size, f.Width, f.Height = made.Size(), footage.Width, footage.Height
	if made.Seconds > 0 {
		f.Bitrate = int64(float64(f.Size) * 8 / made.Seconds)
	}
	f.ResolutionTier = tier(f)
	if err := w.Assets.StaticReady(ctx, a.ID, f, w.Now()); err != nil {
		return err
	}
	return w.sweep(ctx, a, f)
}

// progress writes down how much of a file is encoded. That it can't be is no reason to end.
func (w *Worker) progress(ctx context.Context, a asset.Asset, f asset.StaticRendition) func(done, of int) {
	last := attempt.Step{Percent: f.Progress, At: w.Now()} // by an earlier attempt
	return func(done, of int) {
		percent, now := min(100*float64(done)/float64(of), 99), w.Now()
		if last.Worth(percent, now) && w.Assets.StaticProgress(ctx, a.ID, f.ID, percent, now) == nil {
			last = attempt.Step{Percent: percent, At: now}
		}
	}
}

// fill has those segments made that are not there yet, and tells how many of them all are.
func (w *Worker) fill(ctx context.Context, f download.Footage, tell func(done, of int)) error {
	if f.Fill == nil {
		return nil
	}
	l := f.Renditions[0]
	pass, cancel := context.WithTimeout(ctx, w.Pass)
	defer cancel()
	for i, c := range l.Chunks {
		if c.Gap {
			continue
		}
		made, err := f.Fill(ctx, l.First+int64(i))
		if err != nil {
			return fmt.Errorf("encode segment %d: %w", l.First+int64(i), err)
		}
		tell(i+1, len(l.Chunks))
		if made && pass.Err() != nil && ctx.Err() == nil && i+1 < len(l.Chunks) {
			return job.Snooze(0)
		}
	}
	return nil
}

// tier is the tier of the picture's pixels, as the asset's own resolution_tier goes.
func tier(f asset.StaticRendition) string {
	switch pixels := f.Width * f.Height; {
	case f.Sound():
		return "audio-only"
	case pixels <= 1280*720:
		return "720p"
	case pixels <= 1920*1080:
		return "1080p"
	case pixels <= 2048*2048:
		return "1440p"
	}
	return "2160p"
}

func (w *Worker) sweep(ctx context.Context, a asset.Asset, f asset.StaticRendition) error {
	return assetfile.Clear(ctx, w.Store, objectkey.FileParts(a.Media, f.ID))
}
