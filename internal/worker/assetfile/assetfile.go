// Package assetfile writes and deletes the stored objects of assets for the workers: the index of a timeline, files for
// download, and objects that are no longer needed.
package assetfile

import (
	"context"
	"fmt"
	"slices"

	"millrace/internal/control/asset"
	"millrace/internal/id"
	"millrace/internal/measure"
	"millrace/internal/media/download"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
	"millrace/internal/storage/blob"
)

// FootageSource says what an asset, or a file to download of it, is made of.
type FootageSource interface {
	Footage(ctx context.Context, a asset.Asset, want download.Want) (download.Footage, error)
}

// WriteIndex stores t, the timeline of a, as the index beside its media.
func WriteIndex(ctx context.Context, store blob.Store, a asset.Asset, t *timeline.Timeline) (asset.Finished, error) {
	key, err := mediastore.WriteIndex(ctx, store, a.Media, t)
	if err != nil {
		return asset.Finished{}, err
	}
	f := asset.Finished{Index: key}
	renditions, long := measure.Renditions(t), t.Duration().Seconds()
	f.Facts, f.Tracks = measure.Facts(a, renditions, long), measure.Tracks(renditions, long)
	f.Uses = uses(t, a.Media)
	return f, nil
}

// WriteDownload stores a file to download.
func WriteDownload(ctx context.Context, store blob.Store, key string, of download.Footage) (*download.File, error) {
	f, err := download.Plan(ctx, of.Zero, of.Renditions)
	if err != nil {
		return nil, fmt.Errorf("plan file: %w", err)
	}
	if err := store.Put(ctx, key, f.Reader(ctx)); err != nil {
		return nil, fmt.Errorf("store file: %w", err)
	}
	return f, nil
}

// uses lists the media of others that t refers to.
func uses(t *timeline.Timeline, own id.Media) []id.Media {
	var out []id.Media
	for key := range t.Objects {
		if m, ok := objectkey.Owner(key); ok && m != own && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// Keys lists the objects below prefix.
func Keys(ctx context.Context, store blob.Store, prefix string) ([]string, error) {
	var all []string
	for key, err := range store.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("list media: %w", err)
		}
		all = append(all, key)
	}
	return all, nil
}

// Sweep deletes every object below prefix for which keep reports false.
func Sweep(ctx context.Context, store blob.Store, prefix string, keep func(key string) bool) error {
	const batch = 500
	var gone []string
	flush := func() error {
		if err := store.Delete(ctx, gone...); err != nil {
			return fmt.Errorf("delete media: %w", err)
		}
		gone = gone[:0]
		return nil
	}
	for key, err := range store.List(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("list media: %w", err)
		}
		if keep(key) {
			continue
		}
		if gone = append(gone, key); len(gone) == batch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// Clear deletes every object below prefix.
func Clear(ctx context.Context, store blob.Store, prefix string) error {
	return Sweep(ctx, store, prefix, func(string) bool { return false })
}

// Abandon deletes the media m of an asset that was deleted while a job worked on it, unless another asset still needs
// them.
func Abandon(ctx context.Context, store blob.Store, assets asset.Reader, m id.Media) error {
	if m == "" { // a job of an older version does not say
		return nil
	}
	users, err := assets.Users(ctx, m)
	if err != nil || len(users) > 0 {
		return err
	}
	return Clear(ctx, store, objectkey.Media(m))
}

// DropFile deletes the file to download f and the segments that were made for it alone. When its asset was deleted, it
// deletes what else the job has stored, too.
func DropFile(ctx context.Context, store blob.Store, assets asset.Reader, m id.Media, f id.StaticRendition) error {
	if m == "" || f == "" { // a job of an older version does not say
		return nil
	}
	if err := Clear(ctx, store, objectkey.Files(m)+string(f)); err != nil {
		return err
	}
	return Abandon(ctx, store, assets, m)
}

// DropTrack deletes the files of a track that is not there, unless other assets use the media of the one that had it.
func DropTrack(ctx context.Context, store blob.Store, assets asset.Reader, a asset.Asset, keys ...string) error {
	if a.Media == "" { // a job of an older version does not say
		return nil
	}
	users, err := assets.Users(ctx, a.Media)
	if err != nil || slices.ContainsFunc(users, func(u asset.Asset) bool { return u.ID != a.ID }) {
		return err
	}
	if err := store.Delete(ctx, keys...); err != nil {
		return fmt.Errorf("delete file of track: %w", err)
	}
	return nil
}
