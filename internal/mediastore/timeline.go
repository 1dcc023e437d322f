package mediastore

import (
	"bytes"
	"context"
	"fmt"

	"millrace/internal/control/asset"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/timeline"
	"millrace/internal/storage/blob"
)

// Timeline is an asset's timeline, whole or still growing.
func Timeline(ctx context.Context, store blob.Store, assets asset.Reader, a asset.Asset) (*timeline.Timeline, error) {
	if a.Index == "" {
		return Growing(ctx, assets, a)
	}
	return Index(ctx, store, a.Index)
}

// Growing is the timeline of an asset without an index, from its rows. That of a broadcast that is over ends with what
// an encoder sent last.
func Growing(ctx context.Context, assets asset.Reader, a asset.Asset) (*timeline.Timeline, error) {
	rows, err := assets.Timeline(ctx, a.ID, 0)
	if err != nil {
		return nil, err
	}
	t, err := FromRows(rows)
	if err != nil || a.IsLive || a.LiveStream == "" {
		return t, err
	}
	return t.Concluded(a.Limit)
}

// FromRows applies the rows of a growing timeline, in order.
func FromRows(rows []asset.TimelineEntry) (*timeline.Timeline, error) {
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

// Index reads a whole timeline from its index object.
func Index(ctx context.Context, store blob.Store, key string) (*timeline.Timeline, error) {
	r, err := store.Get(ctx, key, 0, -1)
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

// WriteIndex stores the index of a whole timeline and returns its key.
func WriteIndex(ctx context.Context, store blob.Store, m id.Media, t *timeline.Timeline) (key string, err error) {
	var b bytes.Buffer
	if err := timeline.WriteIndex(&b, t.Entries()); err != nil {
		return "", err
	}
	if err := store.Put(ctx, objectkey.Index(m), &b); err != nil {
		return "", fmt.Errorf("store timeline index: %w", err)
	}
	return objectkey.Index(m), nil
}
