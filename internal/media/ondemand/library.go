package ondemand

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"

	"golang.org/x/sync/singleflight"
)

// Objects opens stored files for reading at any place.
type Objects interface {
	Open(ctx context.Context, key string) (ReaderAtCloser, int64, error)
}

// ReaderAtCloser is an open stored file.
type ReaderAtCloser interface {
	io.ReaderAt
	io.Closer
}

// ErrUnknown says that a file has no such track or samples.
var ErrUnknown = errors.New("no such track or samples in the stored file")

// Library reads chunks of stored files and keeps their indexes at hand.
type Library struct {
	objects Objects
	limit   int64
	flight  singleflight.Group

	mu    sync.Mutex
	files map[string]*list.Element
	order list.List // newest use first
	size  int64
}

type kept struct {
	key  string
	file *mp4.File
}

// NewLibrary returns a Library that keeps up to limit bytes of indexes in memory.
func NewLibrary(objects Objects, limit int64) *Library {
	return &Library{objects: objects, limit: limit, files: map[string]*list.Element{}}
}

// File is the index of a stored file; it is made once however many ask for it at the same time.
func (l *Library) File(ctx context.Context, key string) (*mp4.File, error) {
	if f := l.lookup(key); f != nil {
		return f, nil
	}
	v, err, _ := l.flight.Do(key, func() (any, error) {
		r, size, err := l.objects.Open(context.WithoutCancel(ctx), key) // others wait for it too
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }() // it was only read
		f, err := mp4.Index(r, size)
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", key, err)
		}
		l.keep(key, f)
		return f, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*mp4.File), nil
}

func (l *Library) lookup(key string) *mp4.File {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.files[key]
	if e == nil {
		return nil
	}
	l.order.MoveToFront(e)
	return e.Value.(*kept).file
}

func (l *Library) keep(key string, f *mp4.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files[key] != nil {
		return
	}
	l.files[key] = l.order.PushFront(&kept{key, f})
	l.size += f.Bytes()
	for l.size > l.limit && l.order.Len() > 1 {
		e := l.order.Back()
		k := e.Value.(*kept)
		l.order.Remove(e)
		delete(l.files, k.key)
		l.size -= k.file.Bytes()
	}
}

func (l *Library) track(ctx context.Context, src timeline.Source) (*mp4.Track, error) {
	f, err := l.File(ctx, src.Object)
	if err != nil {
		return nil, err
	}
	for _, t := range f.Tracks {
		if t.ID == src.Track {
			return t, nil
		}
	}
	return nil, ErrUnknown
}

// Init is the init segment of a rendition with a source.
func (l *Library) Init(ctx context.Context, src timeline.Source) ([]byte, error) {
	t, err := l.track(ctx, src)
	if err != nil {
		return nil, err
	}
	return mp4.InitSegment(t), nil
}

// Chunk is a segment: one fragment of the chunk's samples, its first decoding time being the chunk's.
func (l *Library) Chunk(ctx context.Context, src timeline.Source, msn int64, c timeline.Chunk) ([]byte, error) {
	t, err := l.track(ctx, src)
	if err != nil {
		return nil, err
	}
	if c.From < 0 || c.To > t.Len() || c.From >= c.To {
		return nil, ErrUnknown
	}
	r, _, err := l.objects.Open(ctx, src.Object)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was only read
	samples, err := mp4.ReadSamples(r, t, c.From, c.To)
	if err != nil {
		return nil, fmt.Errorf("read samples of %s: %w", src.Object, err)
	}
	settle(t, c, samples)
	return cmaf.AppendFragment(nil, uint32(msn+1), cmaf.TrackID, uint64(c.Time), samples), nil
}

// settle makes the samples last exactly as long as the chunk says and keeps composition offsets positive: a first video sample that was
// pulled to the beginning is still presented in its time.
func settle(t *mp4.Track, c timeline.Chunk, samples []cmaf.Sample) {
	n := len(samples) - 1
	own := t.DTS(c.From+n) + int64(t.Sample(c.From+n).Duration) - t.DTS(c.From)
	if early := c.Duration - own; t.Kind == frame.Video && c.From == 0 && early > 0 {
		samples[0].Duration += uint32(early)
		samples[0].CompositionOffset += int32(early)
	}
}
