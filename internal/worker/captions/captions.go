// Package captions performs the job asset.captions: it turns the closed captions in an asset's pictures into text
// tracks. It must never know HTTP serving or SQL. It starts no goroutine.
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

// Worker does asset.captions.
type Worker struct {
	Assets  asset.TrackMaker
	Store   blob.Store
	Footage assetfile.FootageSource
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
	return attempt.Task[[]asset.Track]{
		Assets: w.Assets, Asset: args.Asset, Media: args.Media,
		Cannot: "the captions can't be read", Failed: "the captions could not be read",
		Find: func(a asset.Asset) ([]asset.Track, attempt.State) {
			if all := a.WaitsForCaptions(); a.Index != "" && len(all) > 0 {
				return all, attempt.Wanted
			}
			return nil, attempt.Ended
		},
		Work: w.attempt,
		Drop: func(ctx context.Context, a asset.Asset) error {
			return assetfile.Abandon(ctx, w.Store, w.Assets, a.Media)
		},
		Fail: w.fail,
	}.Do(ctx, j)
}

// attempt reads the pictures once, for all tracks.
func (w *Worker) attempt(ctx context.Context, a asset.Asset, all []asset.Track) error {
	f, err := w.Footage.Footage(ctx, a, download.Want{Original: true})
	if err != nil {
		return err
	}
	found, err := read(ctx, f)
	if err != nil {
		return err
	}
	for _, t := range all {
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
	return fmt.Sprintf("the file's video has no captions in the channel %s; it has some in %s", channel,
		strings.Join(others, ", "))
}

// fail errors the tracks that still wait. The asset stays as it is.
func (w *Worker) fail(ctx context.Context, a asset.Asset, _ []asset.Track, why asset.Errors) error {
	now, bad := w.Assets.Find(ctx, a.ID)
	if bad != nil {
		return bad
	}
	for _, t := range now.WaitsForCaptions() {
		failed := attempt.IgnoreAbsent(w.Assets.TrackFailed(ctx, a.ID, t.ID, why, w.Now()))
		bad = errors.Join(bad, failed, w.drop(ctx, a, t.ID))
	}
	return bad
}

func key(a asset.Asset, t id.Track) string { return objectkey.Track(a.Media, t, "vtt") }

// drop removes what was stored for a track that is not there.
func (w *Worker) drop(ctx context.Context, a asset.Asset, t id.Track) error {
	if err := w.Store.Delete(ctx, key(a, t)); err != nil && !fault.Is(err, fault.NotFound) {
		return fmt.Errorf("delete file of track: %w", err)
	}
	return nil
}
