package mediastore

import (
	"context"

	"millrace/internal/fault"
	"millrace/internal/media/delivered"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/storage/blob"
)

// Recordings opens renditions of recordings.
type Recordings struct {
	Blob    blob.Store
	Library *ondemand.Library
}

// Rendition is a rendition of a recording as viewers get it; it implements delivered.Source.
type Rendition struct {
	*timeline.Rendition

	first      int64 // media sequence number of Chunks[0]
	recordings Recordings
}

// Rendition opens a rendition of a timeline whose first media sequence number is first.
func (r Recordings) Rendition(l *timeline.Rendition, first int64) Rendition {
	return Rendition{l, first, r}
}

// Init implements delivered.Source.
func (r Rendition) Init(ctx context.Context, n int) ([]byte, error) {
	if n < 0 || n >= len(r.Inits) {
		return nil, fault.New(fault.NotFound, "there is no such init segment")
	}
	if r.Inits[n].Object == "" && r.Source != nil {
		return r.recordings.Library.Init(ctx, *r.Source)
	}
	return Objects{r.recordings.Blob}.Read(ctx, r.Inits[n].Object)
}

// Segment implements delivered.Source.
func (r Rendition) Segment(ctx context.Context, msn int64) (delivered.Body, error) {
	i := msn - r.first
	if i < 0 || i >= int64(len(r.Chunks)) || r.Chunks[i].Gap {
		return delivered.Body{}, fault.New(fault.NotFound, "there is no such segment")
	}
	c := r.Chunks[i]
	if c.Object == "" && r.Source != nil {
		segment, size, err := r.recordings.Library.Segment(ctx, *r.Source, msn, c)
		return delivered.Body{Reader: segment, Size: size}, err
	}
	b, err := Objects{r.recordings.Blob}.Open(ctx, c.Object, 0, -1)
	if err != nil || !r.Inits[c.Init].Still {
		return b, err
	}
	data, err := delivered.Bytes(b, nil)
	if err != nil {
		return delivered.Body{}, err
	}
	data, err = ondemand.Still(data, msn, c)
	return delivered.Body{Data: data}, err
}
