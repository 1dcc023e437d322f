// Package captions does the job asset.captions: the closed captions in the pictures of an asset become text tracks. It must never know HTTP
// serving or SQL. It starts no goroutine.
package captions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/captions"
	"millrace/internal/media/download"
	"millrace/internal/media/objectkey"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/assetfile"
	"millrace/internal/worker/attempt"
)

// FootageSource says what an asset is made of.
type FootageSource interface {
	Footage(ctx context.Context, a asset.Asset, want download.Want) (download.Footage, error)
}

// Worker does asset.captions.
type Worker struct {
	Assets  asset.Work
	Store   blob.Store
	Footage FootageSource
	Now     func() time.Time
}

const attempts = 8

// Handler is its place in the queue. The time is that of reading 12 hours of video from slow storage.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobCaptions, MaxAttempts: attempts, Timeout: 4 * time.Hour, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.CaptionsArgs](j)
	if err != nil {
		return err
	}
	a, err := w.Assets.Find(ctx, args.Asset)
	if attempt.Absent(err) {
		return assetfile.Abandon(ctx, w.Store, w.Assets, args.Media)
	}
	if err != nil || a.Index == "" || len(a.WaitsForCaptions()) == 0 {
		return err
	}
	return w.ending(a).Of(ctx, j, attempt.Run(j, "the captions can't be read", func() error { return w.attempt(ctx, a) }))
}

// attempt reads the pictures once, for all tracks.
func (w *Worker) attempt(ctx context.Context, a asset.Asset) error {
	f, err := w.Footage.Footage(ctx, a, download.Want{Original: true})
	if err != nil {
		return err
	}
	found, err := read(ctx, f)
	if err != nil {
		return err
	}
	for _, t := range a.WaitsForCaptions() {
		if err := w.end(ctx, a, t, found); err != nil {
			return err
		}
	}
	return nil
}

// end makes a track ready with the captions of its channel, or errored where there are none.
func (w *Worker) end(ctx context.Context, a asset.Asset, t asset.Track, found *channels) error {
	d := captions.New(found.cues[t.Channel])
	if d.Len() == 0 {
		why := asset.Errors{Type: "captions_not_found", Messages: []string{found.missing(t.Channel)}}
		return attempt.IgnoreAbsent(w.Assets.TrackFailed(ctx, a.ID, t.ID, why, w.Now()))
	}
	t.Object, t.Duration = key(a, t.ID), d.End().Seconds()
	if err := w.Store.Put(ctx, t.Object, bytes.NewReader(d.AppendVTT(nil))); err != nil {
		return fmt.Errorf("store text track: %w", err)
	}
	err := w.Assets.TrackReady(ctx, a.ID, t, w.Now())
	if attempt.Absent(err) { // deleted meanwhile
		return w.drop(ctx, a, t.ID)
	}
	return err
}

// missing says that there are no captions in a channel, and where there are some.
func (c *channels) missing(channel string) string {
	if !c.video {
		return "the file has no video to read captions from"
	}
	var others []string
	for _, name := range names() {
		if len(c.cues[name]) > 0 {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return "the file's video has no closed captions (CEA-608 or CEA-708)"
	}
	return fmt.Sprintf("the file's video has no captions in the channel %s; it has some in %s", channel, strings.Join(others, ", "))
}

// ending errors the tracks when nothing will be tried again. The asset stays as it is.
func (w *Worker) ending(a asset.Asset) attempt.Ending {
	return attempt.Ending{
		Gone: func(ctx context.Context) (bool, error) {
			_, err := w.Assets.Find(ctx, a.ID)
			return attempt.Absent(err), attempt.IgnoreAbsent(err)
		},
		Drop: func(ctx context.Context) error { return assetfile.Abandon(ctx, w.Store, w.Assets, a.Media) },
		Fail: func(ctx context.Context, err error) error {
			now, bad := w.Assets.Find(ctx, a.ID)
			if bad != nil {
				return bad
			}
			why := asset.Errors{Type: attempt.Type(err), Messages: attempt.Reason(err, "the captions could not be read")}
			for _, t := range now.WaitsForCaptions() {
				failed := attempt.IgnoreAbsent(w.Assets.TrackFailed(ctx, a.ID, t.ID, why, w.Now()))
				bad = errors.Join(bad, failed, w.drop(ctx, a, t.ID))
			}
			return bad
		},
	}
}

func key(a asset.Asset, t id.Track) string { return objectkey.Track(a.Media, t, "vtt") }

// drop removes what was stored for a track that is not there.
func (w *Worker) drop(ctx context.Context, a asset.Asset, t id.Track) error {
	if err := w.Store.Delete(ctx, key(a, t)); err != nil && !fault.Is(err, fault.NotFound) {
		return fmt.Errorf("delete file of track: %w", err)
	}
	return nil
}
