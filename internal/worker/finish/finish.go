// Package finish performs the job asset.finish: once a broadcast is over and its segments are stored, their record
// becomes the asset's index.
package finish

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/assetfile"
	"millrace/internal/worker/attempt"
)

// Worker does asset.finish.
type Worker struct {
	Assets asset.Ingester
	Store  blob.Store
	Now    func() time.Time
}

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobFinish, MaxAttempts: 100, Timeout: time.Hour, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.FinishArgs](j)
	if err != nil {
		return err
	}
	return attempt.Task[struct{}]{
		Assets: w.Assets, Asset: args.Asset, Media: args.Media, Cannot: "the recording can't be completed",
		Find: func(a asset.Asset) (of struct{}, is attempt.State) {
			if a.Index != "" || a.Status == asset.Errored || a.IsLive { // the end of what is live asks again
				return of, attempt.Ended
			}
			return of, attempt.Wanted
		},
		Work: w.attempt,
		Drop: func(ctx context.Context, a asset.Asset) error { // maybe before its index came
			return assetfile.Abandon(ctx, w.Store, w.Assets, a.Media)
		},
		Fail: w.fail,
	}.Do(ctx, j)
}

func (w *Worker) attempt(ctx context.Context, a asset.Asset, _ struct{}) error {
	t, err := mediastore.Timeline(ctx, w.Store, w.Assets, a)
	if err != nil {
		return fmt.Errorf("read timeline of %s: %w", a.ID, err)
	}
	texts, err := w.texts(ctx, a, t)
	if err != nil {
		return err
	}
	f, err := assetfile.WriteIndex(ctx, w.Store, a, t)
	if err != nil {
		return err
	}
	f.Tracks = append(f.Tracks, texts...)
	return w.Assets.Finish(ctx, a.ID, f, w.Now())
}

// texts stores the text tracks that were made while the asset was recorded.
func (w *Worker) texts(ctx context.Context, a asset.Asset, t *timeline.Timeline) (made []asset.Track, err error) {
	for _, tr := range a.Tracks {
		if !tr.OfBroadcast() || tr.Object != "" {
			continue
		}
		// One that is shown at the end was listed as it is, and stays.
		d := mediastore.LiveDocument(t, tr.Rendition).Before(t.Duration())
		done := asset.Track{
			Type: asset.TextTrack, Status: asset.TrackReady, Rendition: tr.Rendition,
			Object:   objectkey.Track(a.Media, tr.ID, "vtt"),
			Duration: min(d.End(), t.Duration()).Seconds(),
		}
		if err := w.Store.Put(ctx, done.Object, bytes.NewReader(d.AppendVTT(nil))); err != nil {
			return nil, fmt.Errorf("store text track: %w", err)
		}
		made = append(made, done)
	}
	return made, nil
}

// fail makes a recording errored that nobody has seen yet. One that plays goes on doing so from its entries, without
// files to download; no recorded segment is deleted.
func (w *Worker) fail(ctx context.Context, a asset.Asset, _ struct{}, why asset.Errors) error {
	if a.Status == asset.Preparing {
		why.Messages = []string{"the recording could not be completed; the service's log says why"}
		return w.Assets.Fail(ctx, a.ID, why, w.Now())
	}
	why.Messages = []string{
		"the recording that the file is made of could not be completed; the service's log says why",
	}
	return w.Assets.FailFiles(ctx, a.ID, why, w.Now())
}
