package ondemand

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/timeline"
)

// maxExtents is how scattered a segment may lie in a file on this machine and still be sent by the system, piece by
// piece.
const maxExtents = 16

// Segment is what Chunk gives, as something to be copied: a bounded piece of it is in memory at a time, however slowly
// it is read. Where the stored file is on this machine and the segment lies in a few pieces, its bytes do not pass
// through memory here at all. The caller closes it. size is how many bytes there are.
func (l *Library) Segment(
	ctx context.Context, src timeline.Source, msn int64, c timeline.Chunk,
) (r io.ReadCloser, size int64, err error) {
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
	file, _, err := l.objects.Open(ctx, src.Object)
	if err != nil {
		return nil, 0, err
	}
	head, payload := cmaf.AppendFragmentHead(nil, uint32(msn+1), cmaf.TrackID, uint64(c.Time), samples)
	size = int64(len(head)) + payload
	filled := slices.ContainsFunc(samples, func(s cmaf.Sample) bool { return s.Data != nil }) // by silence
	if local, ok := file.(localFile); ok && !filled && len(extents) <= maxExtents {
		return &splice{head: head, file: local, extents: extents}, size, nil
	}
	x, err := scatter(head, samples, extents, file)
	if err != nil {
		_ = file.Close() // it was only read
		return nil, 0, fmt.Errorf("read samples of %s: %w", src.Object, err)
	}
	return x, size, nil
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
