// Package settle is what the workers share about an asset's files: it writes down a whole timeline as the index beside the media, reads
// timelines, and sweeps away what nobody needs any more.
package settle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"millrace/internal/bridge/measure"
	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/download"
	"millrace/internal/media/timeline"
	"millrace/internal/storage/blob"
)

// Prefix is where the files of a media set are.
func Prefix(m id.Media) string { return "media/" + string(m) + "/" }

// TracksPrefix is where the files of an asset's text and alternate audio tracks are, each named by its track.
func TracksPrefix(m id.Media) string { return Prefix(m) + "tracks/" }

// FilesPrefix is where the files to download are, each named by its ID.
func FilesPrefix(m id.Media) string { return Prefix(m) + "files/" }

// FileKey is where a file to download is kept.
func FileKey(m id.Media, f id.StaticRendition, ext string) string {
	return FilesPrefix(m) + string(f) + "." + ext
}

// IndexKey is where the index of an asset's timeline is kept.
func IndexKey(m id.Media) string { return Prefix(m) + "timeline.jsonl" }

// Write stores the index of t, the timeline of a.
func Write(ctx context.Context, store blob.Store, a asset.Asset, t *timeline.Timeline) (asset.Finished, error) {
	var b bytes.Buffer
	if err := timeline.WriteIndex(&b, t.Entries()); err != nil {
		return asset.Finished{}, err
	}
	f := asset.Finished{Index: IndexKey(a.Media)}
	if err := store.Put(ctx, f.Index, &b); err != nil {
		return asset.Finished{}, fmt.Errorf("store timeline index: %w", err)
	}
	lanes, long := measure.Lanes(t), t.Duration().Seconds()
	f.Facts, f.Tracks = measure.Facts(a, lanes, long), measure.Tracks(lanes, long)
	f.Uses = uses(t, a.Media)
	return f, nil
}

// File stores a file to download.
func File(ctx context.Context, store blob.Store, key string, of download.Footage) (*download.File, error) {
	f, err := download.Plan(ctx, of.Zero, of.Lanes)
	if err != nil {
		return nil, fmt.Errorf("plan file: %w", err)
	}
	if err := store.Put(ctx, key, f.Reader(ctx)); err != nil {
		return nil, fmt.Errorf("store file: %w", err)
	}
	return f, nil
}

// Timeline is an asset's timeline, whole or still growing.
func Timeline(ctx context.Context, store blob.Store, assets asset.Work, a asset.Asset) (*timeline.Timeline, error) {
	if a.Index == "" {
		rows, err := assets.Timeline(ctx, a.ID, 0)
		if err != nil {
			return nil, err
		}
		t, err := build(rows)
		if err != nil || a.IsLive || a.LiveStream == "" {
			return t, err
		}
		return t.Concluded(a.Limit)
	}
	r, err := store.Get(ctx, a.Index, 0, -1)
	if err != nil {
		return nil, fmt.Errorf("read timeline index: %w", err)
	}
	defer func() { _ = r.Close() }() // it was only read
	entries, err := timeline.ReadIndex(r)
	if err != nil {
		return nil, err
	}
	return timeline.Build(entries)
}

func build(rows []asset.TimelineEntry) (*timeline.Timeline, error) {
	t := &timeline.Timeline{}
	for _, r := range rows {
		e, err := timeline.Decode(r.Data)
		if err != nil {
			return nil, err
		}
		if err := t.Apply(e); err != nil {
			return nil, fmt.Errorf("timeline row %d: %w", r.Sequence, err)
		}
	}
	return t, nil
}

// uses lists the media of others that t refers to.
func uses(t *timeline.Timeline, own id.Media) []id.Media {
	var out []id.Media
	for key := range t.Objects {
		rest, ok := strings.CutPrefix(key, "media/")
		m, _, cut := strings.Cut(rest, "/")
		if ok && cut && id.Media(m) != own && !slices.Contains(out, id.Media(m)) {
			out = append(out, id.Media(m))
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

// Sweep deletes every object below prefix but those that keep wants.
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

// Abandon deletes what work has stored for an asset that turned out to be gone. It leaves media alone that any asset still needs.
func Abandon(ctx context.Context, store blob.Store, assets asset.Work, m id.Media) error {
	if m == "" { // a job of an older version does not say
		return nil
	}
	users, err := assets.Users(ctx, m)
	if err != nil || len(users) > 0 {
		return err
	}
	return Sweep(ctx, store, Prefix(m), func(string) bool { return false })
}

// Reason is what an owner is told who asked for something that could not be made: in what the service's own storage says there is nothing
// for them.
func Reason(err error, otherwise string) []string {
	if e, ok := errors.AsType[*fault.Error](err); ok && !e.Ours && len(e.Messages) > 0 {
		return e.Messages
	}
	return []string{otherwise + "; the service's log says why"}
}

// DropFile deletes what there is of a file to download, and of the segments that were made for it alone; and what else work on it has stored
// when its asset is gone.
func DropFile(ctx context.Context, store blob.Store, assets asset.Work, m id.Media, f id.StaticRendition) error {
	if m == "" || f == "" { // a job of an older version does not say
		return nil
	}
	if err := Sweep(ctx, store, FilesPrefix(m)+string(f), func(string) bool { return false }); err != nil {
		return err
	}
	return Abandon(ctx, store, assets, m)
}

// Absent says that an asset, or something that it had, was deleted. That the storage has not got something is no sign of it.
func Absent(err error) bool {
	e, ok := errors.AsType[*fault.Error](err)
	return ok && e.Kind == fault.NotFound && !e.Ours
}

// Gone makes peace with an asset, or a track, that was deleted while work on it was under way.
func Gone(err error) error {
	if Absent(err) {
		return nil
	}
	return err
}
