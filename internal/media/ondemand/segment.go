package ondemand

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/timeline"
)

const (
	// maxExtents is how scattered a segment may lie in its file and still be copied piece by piece.
	maxExtents = 16
	// maxPooled is the largest buffer that is kept for the next segment.
	maxPooled = 8 << 20
)

// Segment is what Chunk gives, as something to be copied, with memory that is used again: the caller closes it and keeps nothing of it.
// Where the stored file is on this machine and the segment lies in a few pieces, its bytes do not pass through memory here at all.
// size is how many bytes there are.
func (l *Library) Segment(ctx context.Context, src timeline.Source, msn int64, c timeline.Chunk) (r io.ReadCloser, size int64, err error) {
	k, t, err := l.samples(ctx, src, c)
	if err != nil {
		return nil, 0, err
	}
	samples, extents, err := mp4.Layout(t, c.From, c.To)
	if err != nil {
		return nil, 0, fmt.Errorf("read samples of %s: %w", src.Object, err)
	}
	if samples, err = k.fit(t, c, samples); err != nil {
		return nil, 0, err
	}
	if slices.ContainsFunc(samples, func(s cmaf.Sample) bool { return s.Data != nil }) { // silence between what is stored
		x := &loaded{}
		x.data, err = l.Chunk(ctx, src, msn, c)
		return x, int64(len(x.data)), err
	}
	file, _, err := l.objects.Open(ctx, src.Object)
	if err != nil {
		return nil, 0, err
	}
	local, ok := file.(localFile)
	if !ok || len(extents) > maxExtents {
		defer func() { _ = file.Close() }() // it was only read
		x := loadedFrom(&l.buffers)
		if err = x.load(file, t, c, msn, samples); err != nil {
			_ = x.Close() // nobody else does
			return nil, 0, fmt.Errorf("read samples of %s: %w", src.Object, err)
		}
		return x, int64(len(x.data)), nil
	}
	head, payload := cmaf.AppendFragmentHead(nil, uint32(msn+1), cmaf.TrackID, uint64(c.Time), samples)
	return &splice{head: head, file: local, extents: extents}, int64(len(head)) + payload, nil
}

// loaded is a segment in a buffer of the pool.
type loaded struct {
	pool    *sync.Pool
	data    []byte
	scratch []byte
	read    int
}

func loadedFrom(pool *sync.Pool) *loaded {
	if x, ok := pool.Get().(*loaded); ok {
		return x
	}
	return &loaded{pool: pool}
}

func (x *loaded) load(r io.ReaderAt, t *mp4.Track, c timeline.Chunk, msn int64, samples []cmaf.Sample) error {
	head, payload := cmaf.AppendFragmentHead(x.data[:0], uint32(msn+1), cmaf.TrackID, uint64(c.Time), samples)
	size := len(head) + int(payload)
	if cap(head) < size {
		head = append(make([]byte, 0, size), head...)
	}
	x.data, x.read = head[:size], 0
	var err error
	x.scratch, err = mp4.ReadBytes(r, t, c.From, c.To, x.data[len(head):], x.scratch)
	return err
}

// Read implements io.Reader.
func (x *loaded) Read(p []byte) (int, error) {
	if x.read == len(x.data) {
		return 0, io.EOF
	}
	n := copy(p, x.data[x.read:])
	x.read += n
	return n, nil
}

// WriteTo implements io.WriterTo.
func (x *loaded) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(x.data[x.read:])
	x.read += n
	return int64(n), err
}

// Close implements io.Closer: the memory is the next segment's.
func (x *loaded) Close() error {
	if x.pool != nil && cap(x.data) <= maxPooled && cap(x.scratch) <= maxPooled {
		next := &loaded{pool: x.pool, data: x.data[:0], scratch: x.scratch}
		x.pool.Put(next)
	}
	x.pool, x.data, x.scratch, x.read = nil, nil, nil, 0 // a reader that goes on gets nothing
	return nil
}

// localFile is a file that the system can copy from.
type localFile interface {
	io.ReadSeeker
	ReaderAtCloser
}

// splice is a head and pieces of a file behind it.
type splice struct {
	head    []byte
	file    localFile
	extents []mp4.Extent
	whole   io.Reader // for Read
}

// Read implements io.Reader.
func (s *splice) Read(p []byte) (int, error) {
	if s.whole == nil {
		pieces := []io.Reader{bytes.NewReader(s.head)}
		for _, e := range s.extents {
			pieces = append(pieces, io.NewSectionReader(s.file, e.Offset, e.Length))
		}
		s.whole = io.MultiReader(pieces...)
	}
	return s.whole.Read(p)
}

// WriteTo implements io.WriterTo. Each piece is offered as a part of the file itself, which a socket takes by sendfile.
func (s *splice) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(s.head)
	total := int64(n)
	for _, e := range s.extents {
		if err != nil {
			return total, err
		}
		if _, err = s.file.Seek(e.Offset, io.SeekStart); err != nil {
			return total, fmt.Errorf("find samples: %w", err)
		}
		var sent int64
		sent, err = io.CopyN(w, s.file, e.Length)
		total += sent
	}
	return total, err
}

// Close implements io.Closer.
func (s *splice) Close() error { return s.file.Close() }
