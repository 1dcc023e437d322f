// Package settle writes down a whole timeline: its index beside the media, and what the asset is told of it.
package settle

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"millrace/internal/bridge/measure"
	"millrace/internal/control/asset"
	"millrace/internal/id"
	"millrace/internal/media/timeline"
	"millrace/internal/storage/blob"
)

// IndexKey is where the index of an asset's timeline is kept.
func IndexKey(m id.Media) string { return "media/" + string(m) + "/timeline.jsonl" }

// Write stores the index of t, the timeline of an asset whose own media is m.
func Write(ctx context.Context, store blob.Store, m id.Media, t *timeline.Timeline) (asset.Finished, error) {
	var b bytes.Buffer
	if err := timeline.WriteIndex(&b, t.Entries()); err != nil {
		return asset.Finished{}, err
	}
	f := asset.Finished{Index: IndexKey(m)}
	if err := store.Put(ctx, f.Index, &b); err != nil {
		return asset.Finished{}, fmt.Errorf("store timeline index: %w", err)
	}
	lanes, long := measure.Lanes(t), t.Duration().Seconds()
	f.Facts, f.Tracks = measure.Facts(lanes, long), measure.Tracks(lanes, long)
	f.Uses = uses(t, m)
	return f, nil
}

// Read loads an index.
func Read(ctx context.Context, store blob.Store, key string) (*timeline.Timeline, error) {
	r, err := store.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, fmt.Errorf("read timeline index: %w", err)
	}
	defer func() { _ = r.Close() }() // it was only read
	entries, err := timeline.ReadIndex(io.Reader(r))
	if err != nil {
		return nil, err
	}
	return timeline.Build(entries)
}

// Rows builds a growing timeline from its stored rows.
func Rows(rows []asset.TimelineEntry) (*timeline.Timeline, error) {
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

// Timeline is an asset's timeline, whole or still growing.
func Timeline(ctx context.Context, store blob.Store, assets asset.Work, a asset.Asset) (*timeline.Timeline, error) {
	if a.Index != "" {
		return Read(ctx, store, a.Index)
	}
	rows, err := assets.Timeline(ctx, a.ID, 0)
	if err != nil {
		return nil, err
	}
	return Rows(rows)
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
