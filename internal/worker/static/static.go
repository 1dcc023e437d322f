// Package static does the job asset.static: a file to download is made of an asset's renditions. What has to be encoded is encoded segment
// by segment into storage first, so that another attempt goes on where one was ended; then the file is written in one stream.
// It must never know HTTP serving or SQL. It starts no goroutine.
package static

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/media/download"
	"millrace/internal/media/encode"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/settle"
)

// Films say what a file is made of.
type Films interface {
	Footage(ctx context.Context, a asset.Asset, want download.Want) (download.Footage, error)
}

// Encoder makes an M4A of any sound; encode.Engine fits.
type Encoder interface {
	EncodeAudio(ctx context.Context, job encode.AudioArgs, progress func(time.Duration)) error
}

// Worker does asset.static.
type Worker struct {
	Assets  asset.Work
	Store   blob.Store
	Films   Films
	Encoder Encoder
	Scratch string // folder for sound that is encoded anew; absolute, since ffmpeg has a working folder of its own
	// Turn is for how long a job encodes before it lets others have its place in the queue.
	Turn time.Duration
	Now  func() time.Time
}

const attempts = 8

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobStatic, MaxAttempts: attempts, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.StaticArgs](j)
	if err != nil {
		return err
	}
	a, err := w.Assets.Find(ctx, args.Asset)
	if err != nil {
		return settle.Gone(err) // its purge takes everything
	}
	for _, f := range a.Static.Files {
		if f.ID == args.File && f.Status == asset.FilePreparing {
			return w.settled(ctx, a, f, w.attempt(ctx, a, f, j), j)
		}
	}
	return nil
}

// attempt makes the file. A panic is an error, so that the file gets an end.
func (w *Worker) attempt(ctx context.Context, a asset.Asset, f asset.StaticRendition, j job.Job) (err error) {
	if j.MaxAttempts > 0 && j.Attempt >= 2*j.MaxAttempts { // the queue gives up now
		return fault.New(fault.Invalid, "the file can't be made: the service ended each time it tried")
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("making of a static rendition panicked: %v", p)
		}
	}()
	footage, err := w.Films.Footage(ctx, a, download.Want{Sound: f.Sound(), Short: f.Short(), Spare: spare(a, f)})
	if err != nil {
		return err
	}
	if err = w.fill(ctx, footage); err != nil {
		return err
	}
	if footage.Anew {
		defer func() { err = errors.Join(err, w.dropScratch(f.ID)) }()
		if err = w.resound(ctx, &footage, f.ID); err != nil {
			return err
		}
	}
	made, err := settle.File(ctx, w.Store, settle.FileKey(a.Media, f.ID, f.Ext), footage)
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

// fill has those segments made that are not there yet.
func (w *Worker) fill(ctx context.Context, f download.Footage) error {
	if f.Fill == nil {
		return nil
	}
	l := f.Lanes[0]
	turned, cancel := context.WithTimeout(ctx, w.Turn)
	defer cancel()
	for i, c := range l.Chunks {
		if c.Gap {
			continue
		}
		made, err := f.Fill(ctx, l.First+int64(i))
		if err != nil {
			return fmt.Errorf("encode segment %d: %w", l.First+int64(i), err)
		}
		if made && turned.Err() != nil && ctx.Err() == nil && i+1 < len(l.Chunks) {
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

// spare is where segments are that are made for the file alone.
func spare(a asset.Asset, f asset.StaticRendition) string {
	return settle.FilesPrefix(a.Media) + string(f.ID) + "/"
}

func (w *Worker) sweep(ctx context.Context, a asset.Asset, f asset.StaticRendition) error {
	return settle.Sweep(ctx, w.Store, spare(a, f), func(string) bool { return false })
}

// settled ends the file in an error when nothing will be tried again.
func (w *Worker) settled(ctx context.Context, a asset.Asset, f asset.StaticRendition, err error, j job.Job) error {
	var snooze *job.SnoozeError
	switch {
	case err == nil, errors.As(err, &snooze):
		return err
	case fault.KindOf(err) == fault.NotFound && w.gone(ctx, a, f):
		return w.discard(ctx, a, f)
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return err // stopped: the job is taken up again
	case !fault.Permanent(err) && !j.Last():
		return err
	}
	messages := settle.Reason(err, "the file could not be made")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	failed := w.Assets.StaticFailed(ctx, a.ID, f.ID, asset.Errors{Type: "invalid_input", Messages: messages}, w.Now())
	return errors.Join(err, settle.Gone(failed), w.sweep(ctx, a, f))
}

// gone says that the file, or its asset, was deleted while it was made.
func (w *Worker) gone(ctx context.Context, a asset.Asset, f asset.StaticRendition) bool {
	now, err := w.Assets.Find(ctx, a.ID)
	if err != nil {
		return fault.KindOf(err) == fault.NotFound
	}
	for _, have := range now.Static.Files {
		if have.ID == f.ID {
			return false
		}
	}
	return true
}

// discard takes away what was stored of a file that is not wanted any more.
func (w *Worker) discard(ctx context.Context, a asset.Asset, f asset.StaticRendition) error {
	if err := w.Store.Delete(ctx, settle.FileKey(a.Media, f.ID, f.Ext)); err != nil {
		return fmt.Errorf("delete file that is gone: %w", err)
	}
	if err := w.sweep(ctx, a, f); err != nil {
		return err
	}
	return settle.Abandon(ctx, w.Store, w.Assets, a.Media)
}
