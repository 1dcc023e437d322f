package ondemand_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
)

// elsewhere are files that are not on this machine; ranges: they are read in ranges.
type elsewhere struct {
	files

	ranges bool
	err    error // of a range
}

// Open opens a file by name.
func (e elsewhere) Open(ctx context.Context, key string) (ondemand.ReaderAtCloser, int64, error) {
	file, size, err := e.files.Open(ctx, key)
	if err != nil || !e.ranges {
		return struct{ ondemand.ReaderAtCloser }{file}, size, err
	}
	return ranged{file, e.err}, size, nil
}

// ranged is a file that is read in ranges.
type ranged struct {
	ondemand.ReaderAtCloser

	err error
}

// Range implements ondemand.Ranger.
func (r ranged) Range(off, n int64) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(r, off, n)), r.err
}

// checkCopy holds a segment that is copied against the one that is made in memory, wherever the file is and however it
// is read.
func (m media) checkCopy(t *testing.T, src timeline.Source, msn int64, c timeline.Chunk, want []byte) {
	t.Helper()
	for where, library := range map[string]*ondemand.Library{
		"here":      m.library,
		"elsewhere": ondemand.NewLibrary(elsewhere{files: files{m.dir}}, 1<<20),
		"ranges":    ondemand.NewLibrary(elsewhere{files: files{m.dir}, ranges: true}, 1<<20),
	} {
		for how, read := range map[string]func(io.Reader) ([]byte, error){
			"read": io.ReadAll,
			"written": func(r io.Reader) ([]byte, error) {
				var b bytes.Buffer
				_, err := r.(io.WriterTo).WriteTo(&b)
				return b.Bytes(), err
			},
		} {
			r, size, err := library.Segment(t.Context(), src, msn, c)
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(r)
			if err != nil || size != int64(len(want)) || !bytes.Equal(got, want) {
				t.Errorf("%s segment %d, %s, %s: %d bytes of %d, want %d, %v",
					src.Object, msn, where, how, len(got), size, len(want), err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// slowClient is one that takes nothing until it may.
type slowClient struct {
	began, may chan struct{}
	once       sync.Once
	most       int // bytes that it is given at a time
}

// Write implements io.Writer.
func (s *slowClient) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.began) })
	<-s.may
	s.most = max(s.most, len(p))
	return len(p), nil
}

// TestSegmentInPieces: of a scattered segment a piece is in memory at a time. Few of those that are sent at the same
// time are in large pieces, however many clients take nothing. An object that can't be read is an error at once.
func TestSegmentInPieces(t *testing.T) {
	t.Parallel()
	large := []string{"-f", "lavfi", "-i", "testsrc2=size=640x360:duration=6:rate=30"}
	m := plan(t, ffmpeg(t, "a.mp4", args(large, sound("6"), h264("60", "-qp", "4"))...))
	video := m.timeline.Rendition(timeline.MainVideo)
	clients := make([]slowClient, 40)
	var all sync.WaitGroup
	may := make(chan struct{})
	for i := range clients {
		c := &clients[i]
		c.began, c.may = make(chan struct{}), may
		r, size, err := m.library.Segment(t.Context(), *video.Source, 0, video.Chunks[0])
		if err != nil || size < 400<<10 {
			t.Fatalf("%d bytes, %v", size, err)
		}
		all.Go(func() {
			defer func() { _ = r.Close() }() // it was only read
			if n, err := io.Copy(c, r); err != nil || n != size {
				t.Errorf("%d bytes of %d, %v", n, size, err)
			}
		})
		<-c.began
	}
	close(may)
	all.Wait()
	more := 0
	for i := range clients {
		switch most := clients[i].most; {
		case most > 256<<10:
			t.Errorf("a piece of %d bytes", most)
		case most > 32<<10:
			more++
		}
	}
	if more > 32 { // other tests use them at the same time
		t.Errorf("%d are sent in large pieces", more)
	}
	failed := errors.New("failed")
	library := ondemand.NewLibrary(elsewhere{files: files{m.dir}, ranges: true, err: failed}, 1<<20)
	if _, _, err := library.Segment(t.Context(), *video.Source, 0, video.Chunks[0]); !errors.Is(err, failed) {
		t.Errorf("an object that can't be read: %v", err)
	}
}
