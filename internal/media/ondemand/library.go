package ondemand

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/singleflight"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
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

// cachedIndex is an index with what was worked out of it.
type cachedIndex struct {
	key  string
	file *mp4.File

	mu     sync.Mutex
	videos map[videoKey]*videoTrack
}

type videoKey struct {
	track uint32
	start int64
}

// videoTrack is worked out when the track is first played.
func (ci *cachedIndex) video(t *mp4.Track) (*videoTrack, error) {
	ci.mu.Lock()
	defer ci.mu.Unlock()
	key := videoKey{t.ID, t.Start}
	r := ci.videos[key]
	if r != nil {
		return r, nil
	}
	r, err := newVideoTrack(t)
	if err == nil {
		ci.videos[key] = r
	}
	return r, err
}

// NewLibrary returns a Library that keeps up to limit bytes of indexes in memory.
func NewLibrary(objects Objects, limit int64) *Library {
	return &Library{objects: objects, limit: limit, files: map[string]*list.Element{}}
}

// File is the index of a stored file; it is made once however many ask for it at the same time.
func (l *Library) File(ctx context.Context, key string) (*mp4.File, error) {
	k, err := l.find(ctx, key)
	if err != nil {
		return nil, err
	}
	return k.file, nil
}

func (l *Library) find(ctx context.Context, key string) (*cachedIndex, error) {
	if k := l.lookup(key); k != nil {
		return k, nil
	}
	v, err, _ := l.flight.Do(key, func() (any, error) {
		if k := l.lookup(key); k != nil { // another flight has ended since we looked
			return k, nil
		}
		r, size, err := l.objects.Open(context.WithoutCancel(ctx), key) // others wait for it too
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.Close() }() // it was only read
		f, err := mp4.Index(r, size)
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", key, err)
		}
		return l.keep(key, f), nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*cachedIndex), nil
}

func (l *Library) lookup(key string) *cachedIndex {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.files[key]
	if e == nil {
		return nil
	}
	l.order.MoveToFront(e)
	return e.Value.(*cachedIndex)
}

func (l *Library) keep(key string, f *mp4.File) *cachedIndex {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.files[key]; e != nil {
		return e.Value.(*cachedIndex)
	}
	made := &cachedIndex{key: key, file: f, videos: map[videoKey]*videoTrack{}}
	l.files[key] = l.order.PushFront(made)
	l.size += f.Bytes()
	for l.size > l.limit && l.order.Len() > 1 {
		e := l.order.Back()
		k := e.Value.(*cachedIndex)
		l.order.Remove(e)
		delete(l.files, k.key)
		l.size -= k.file.Bytes()
	}
	return made
}

func (l *Library) track(ctx context.Context, src timeline.Source) (*cachedIndex, *mp4.Track, error) {
	k, err := l.find(ctx, src.Object)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range k.file.Tracks {
		if t.ID == src.Track {
			return k, t.CountedFrom(src.Start), nil // timelines stay as they were made
		}
	}
	return nil, nil, ErrUnknown
}

// Init is the init segment of a rendition with a source.
func (l *Library) Init(ctx context.Context, src timeline.Source) ([]byte, error) {
	_, t, err := l.track(ctx, src)
	if err != nil {
		return nil, err
	}
	return mp4.InitSegment(t), nil
}

// Chunk is a segment: one fragment of the chunk's samples, its first decoding time being the chunk's. It costs twice
// the segment's bytes of memory, one half of which is given back.
func (l *Library) Chunk(ctx context.Context, src timeline.Source, msn int64, c timeline.Chunk) ([]byte, error) {
	k, t, err := l.samples(ctx, src, c)
	if err != nil {
		return nil, err
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
	if samples, err = k.fit(t, c, samples); err != nil {
		return nil, err
	}
	return cmaf.AppendFragment(nil, uint32(msn+1), cmaf.TrackID, uint64(c.Time), samples), nil
}

func (l *Library) samples(
	ctx context.Context, src timeline.Source, c timeline.Chunk,
) (*cachedIndex, *mp4.Track, error) {
	k, t, err := l.track(ctx, src)
	if err == nil && (c.From < 0 || c.To > t.Len() || c.From > c.To || c.From == c.To && t.Kind != frame.Audio) {
		err = ErrUnknown
	}
	return k, t, err
}

// fit gives samples the times that they have in the chunk, and those that are to be sent.
func (ci *cachedIndex) fit(t *mp4.Track, c timeline.Chunk, samples []cmaf.Sample) ([]cmaf.Sample, error) {
	if t.Kind != frame.Video {
		if s, ok := silenceFor(t); ok {
			samples = s.fill(c, samples)
		} else if len(samples) > 0 {
			fitSound(c.Duration, samples)
		}
		return withBytes(samples), nil
	}
	x, err := ci.video(t)
	if err != nil {
		return nil, err
	}
	if err = x.fit(c, samples); err != nil {
		return nil, err
	}
	return withBytes(samples), nil
}

// withBytes leaves out samples without bytes, by which some writers say that nothing new is shown: there are players
// that take no fragment with one. The sample before lasts so much longer, and in front of all others the one behind
// begins so much sooner.
func withBytes(samples []cmaf.Sample) []cmaf.Sample {
	out, early := samples[:0], uint32(0)
	for _, s := range samples {
		switch {
		case len(s.Data) > 0 || s.Size > 0:
			s.Duration, s.CompositionOffset = s.Duration+early, s.CompositionOffset+int32(early)
			out, early = append(out, s), 0
		case len(out) > 0:
			out[len(out)-1].Duration += s.Duration
		default:
			early += s.Duration
		}
	}
	if len(out) == 0 {
		return samples
	}
	return out
}
