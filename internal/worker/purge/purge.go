// Package purge performs the job media.purge: it deletes the files of a media set that no asset needs any more. It
// keeps those that clips still play. While the asset that owns the set is not deleted, it only removes files for
// download and files of deleted tracks.
package purge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/mediastore"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/assetfile"
)

// Worker does media.purge.
type Worker struct {
	Assets asset.Reader
	Store  blob.Store
	Purged func(ctx context.Context, m id.Media) error // is told of media that may have fewer bytes now
}

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobPurge, MaxAttempts: 100, Timeout: 6 * time.Hour, Work: w.work}
}

// preparing is how long to wait for a clip that is just being made of the media.
const preparing = 5 * time.Second

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.PurgeArgs](j)
	if err != nil {
		return err
	}
	// What is there is looked up before who needs it: what is made meanwhile is not of the first.
	tracks, err := assetfile.Keys(ctx, w.Store, objectkey.Tracks(args.Media))
	if err != nil {
		return err
	}
	files, err := assetfile.Keys(ctx, w.Store, objectkey.Files(args.Media))
	if err != nil {
		return err
	}
	users, err := w.Assets.Users(ctx, args.Media)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.Status == asset.Preparing {
			return job.Snooze(preparing) // what it will need is not known yet
		}
	}
	needed := map[string]bool{}
	var owner *asset.Asset
	for i, u := range users {
		if u.Media == args.Media {
			owner = &users[i]
			continue
		}
		if err = w.need(ctx, u, needed); err != nil {
			return err
		}
	}
	if owner != nil {
		err = w.delete(ctx, slices.Concat(unusedTracks(*owner, tracks, needed), unusedFiles(*owner, files)))
	} else {
		keep := func(key string) bool { return needed[key] }
		err = assetfile.Sweep(ctx, w.Store, objectkey.Media(args.Media), keep)
	}
	if err != nil {
		return err
	}
	return w.Purged(ctx, args.Media)
}

// need adds what an asset plays.
func (w *Worker) need(ctx context.Context, u asset.Asset, needed map[string]bool) error {
	if u.Status == asset.Errored {
		return nil
	}
	t, err := mediastore.Timeline(ctx, w.Store, w.Assets, u)
	if err != nil {
		return fmt.Errorf("read timeline of %s: %w", u.ID, err)
	}
	for key := range t.Objects {
		needed[key] = true
	}
	for _, tr := range u.Tracks {
		needed[tr.Object] = true
	}
	return nil
}

// unusedTracks are the files of tracks that the asset does not have any more, but for those that a clip of it plays.
// The file of one that is being made has its track's name.
func unusedTracks(a asset.Asset, keys []string, keep map[string]bool) []string {
	names := map[id.Track]bool{}
	for _, tr := range a.Tracks {
		keep[tr.Object], names[tr.ID] = true, true
	}
	prefix := objectkey.Tracks(a.Media)
	return slices.DeleteFunc(keys, func(key string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), ".")
		return keep[key] || names[id.Track(name)]
	})
}

// unusedFiles are the files to download that the asset does not have any more.
func unusedFiles(a asset.Asset, keys []string) []string {
	keep := map[id.StaticRendition]bool{}
	for _, f := range a.Static.Files {
		keep[f.ID] = true
	}
	if a.Master != nil {
		keep[a.Master.ID] = true
	}
	prefix := objectkey.Files(a.Media)
	return slices.DeleteFunc(keys, func(key string) bool {
		name := strings.TrimPrefix(key, prefix) // {file}.mp4, or {file}/… with what it is made of
		name = name[:max(strings.IndexAny(name, "./"), 0)]
		return keep[id.StaticRendition(name)]
	})
}

func (w *Worker) delete(ctx context.Context, keys []string) error {
	const batch = 500
	for some := range slices.Chunk(keys, batch) {
		if err := w.Store.Delete(ctx, some...); err != nil {
			return fmt.Errorf("delete media: %w", err)
		}
	}
	return nil
}
