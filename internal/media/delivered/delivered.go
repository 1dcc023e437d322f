// Package delivered defines media as viewers receive it: the segments of one rendition, wherever they are. Whatever
// reads media (just-in-time encoding, images, clips, downloads) reads it from a Source: the live edge, a recording, or
// a rendition encoded from another one. It must never know HTTP, storage or resources. It starts no goroutine.
package delivered

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/metering"
)

// Source is one rendition.
type Source interface {
	// Init is an initialization segment by its number. fault.NotFound: there is none.
	Init(ctx context.Context, n int) ([]byte, error)
	// Segment is a media segment by its media sequence number. The caller closes it. fault.NotFound: there is none.
	Segment(ctx context.Context, msn int64) (Body, error)
}

// Objects reads stored objects.
type Objects interface {
	// Open gives n bytes of an object from offset on; n < 0: up to its end. The caller closes it. fault.NotFound: there
	// is no such object.
	Open(ctx context.Context, key string, offset, n int64) (Body, error)
}

// Body is media: Data, or Size bytes from Reader.
type Body struct {
	Data   []byte
	Reader io.ReadCloser // one that is an io.Seeker as well is not read up to where a range begins
	Size   int64
	Type   string // media type; empty: by the resource's extension
	Text   bool   // it is of a rendition of text, which is never encrypted
	// Watched is what a viewer has watched who is sent all of it; zero: nothing that counts.
	Watched metering.Delivery
	// Init is what a segment or part is decoded with.
	Init Init
	// Start is the wall-clock time of a segment's or part's first frame, as playlists say it of the segment; zero: they
	// do not.
	Start time.Time
}

// Init names an initialization segment of a rendition.
type Init struct {
	Number     int
	Generation int64 // in which it was published
}

// MaxSize is the largest segment there is, in bytes.
const MaxSize = 256 << 20

// Open returns a body as something to read, and its size in bytes. The caller closes it.
func (b Body) Open() (io.ReadCloser, int64) {
	if b.Reader != nil {
		return b.Reader, b.Size
	}
	return io.NopCloser(bytes.NewReader(b.Data)), int64(len(b.Data))
}

// Bytes reads a body to its end and closes it; it takes the results of a method that returns one.
func Bytes(b Body, err error) ([]byte, error) {
	if err != nil || b.Reader == nil {
		return b.Data, err
	}
	return b.Read(nil)
}

// Read reads a body that has a Reader to its end and closes it, into buf where that is large enough.
func (b Body) Read(buf []byte) ([]byte, error) {
	defer func() { _ = b.Reader.Close() }() // it was only read
	if b.Size > MaxSize {
		return nil, fault.New(fault.Internal, "a segment has %d bytes", b.Size)
	}
	if int64(cap(buf)) < b.Size {
		buf = make([]byte, b.Size)
	}
	data := buf[:b.Size]
	if _, err := io.ReadFull(b.Reader, data); err != nil {
		return nil, fmt.Errorf("read media: %w", err)
	}
	return data, nil
}
