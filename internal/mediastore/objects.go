// Package mediastore locates the media of assets: the timeline in rows or in a stored index, the segments of recordings
// as they are delivered, and stored objects that are derived from them. Package media/objectkey names the keys. It must
// never know SQL, S3's API or HTTP. It starts no goroutine.
package mediastore

import (
	"context"
	"fmt"
	"io"

	"millrace/internal/media/captions"
	"millrace/internal/media/delivered"
	"millrace/internal/media/timeline"
	"millrace/internal/storage/blob"
)

// Objects reads stored objects; it implements delivered.Objects.
type Objects struct{ Blob blob.Store }

// Open implements delivered.Objects.
func (o Objects) Open(ctx context.Context, key string, offset, n int64) (delivered.Body, error) {
	r, err := o.Blob.Get(ctx, key, offset, n)
	if err != nil {
		return delivered.Body{}, err
	}
	if n < 0 {
		n = r.Size - offset
	}
	return delivered.Body{Reader: r.ReadCloser, Size: n}, nil
}

// Read is a whole object. fault.NotFound: there is none.
func (o Objects) Read(ctx context.Context, key string) ([]byte, error) {
	return delivered.Bytes(o.Open(ctx, key, 0, -1))
}

// Document is a stored text track.
func Document(ctx context.Context, store blob.Store, key string) (captions.Document, error) {
	r, err := store.Get(ctx, key, 0, -1)
	if err != nil {
		return captions.Document{}, err
	}
	defer func() { _ = r.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(r, 2*captions.MaxInput))
	if err != nil {
		return captions.Document{}, fmt.Errorf("read text track: %w", err)
	}
	d, err := captions.Stored(data)
	if err != nil {
		return d, fmt.Errorf("parse text track: %w", err)
	}
	return d, nil
}

// LiveDocument is what was published in a text rendition of a recording, up to its end.
func LiveDocument(t *timeline.Timeline, rendition string) captions.Document {
	x := t.Text(rendition)
	if x == nil {
		return captions.Document{}
	}
	cues := make([]captions.Cue, len(x.Cues))
	for i := range x.Cues {
		cues[i] = x.Cues[i].Caption()
	}
	return captions.New(cues)
}
