// Package download makes one progressive MP4 from renditions that are stored as segments. A first pass over the
// segments' heads finds out what the moov must contain; a second pass produces the file byte by byte, the moov first,
// so that neither memory nor disk ever holds all of the media. The same segments always give the same bytes.
//
// It must never know HTTP, resources, where objects are kept, or who downloads. It starts no goroutine.
package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"millrace/internal/fault"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/movie"
	"millrace/internal/media/delivered"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// Rendition is a rendition that becomes a track.
type Rendition struct {
	Kind      frame.Kind
	Timescale uint32           // ticks per second of the chunks
	First     int64            // media sequence number of Chunks[0]
	Chunks    []timeline.Chunk // gaps are left out: what is before them lasts longer
	Source    delivered.Source // a Reader that is an io.Seeker as well is not read where only its head is of use
}

// File is a file that can be written.
type File struct {
	head       []byte
	pieces     []piece
	renditions []Rendition
	size       int64

	Seconds float64 // it is shown for so long
	// Entries is how many different sample entries its tracks have, at most: with more than one not every player
	// follows.
	Entries int
}

// piece is the media of one segment.
type piece struct {
	rendition int
	msn       int64
	size      int64 // bytes of media
}

// Size is in bytes.
func (f *File) Size() int64 { return f.size }

// Plan reads what there is. zero is the media time, in seconds, at which the presentation begins. The renditions have
// the same media sequence numbers.
func Plan(ctx context.Context, zero float64, renditions []Rendition) (*File, error) {
	p := planner{movie: &movie.Movie{}, file: &File{renditions: renditions}}
	first, last := int64(math.MaxInt64), int64(0)
	for i := range renditions {
		l := &renditions[i]
		first, last = min(first, l.First), max(last, l.First+int64(len(l.Chunks)))
		p.tracks = append(p.tracks, &track{zero: int64(math.Round(zero * float64(l.Timescale))), inits: map[int]int{}})
	}
	for msn := first; msn < last; msn++ {
		for i := range renditions {
			if err := p.add(ctx, i, msn); err != nil {
				return nil, err
			}
		}
	}
	if p.movie.Media() == 0 {
		return nil, fault.New(fault.Invalid, "there is no media to make a file of")
	}
	f := p.file
	f.head, f.Seconds = p.movie.Head(), p.movie.Seconds()
	f.size = int64(len(f.head)) + p.movie.Media()
	return f, nil
}

type planner struct {
	movie  *movie.Movie
	tracks []*track
	file   *File
}

// track is a track that is being planned; its place in the movie is taken by its first segment.
type track struct {
	out   *movie.Track
	zero  int64
	inits map[int]int // init segment → sample entry
}

func (p *planner) add(ctx context.Context, rendition int, msn int64) error {
	l, t := &p.file.renditions[rendition], p.tracks[rendition]
	i := msn - l.First
	if i < 0 || i >= int64(len(l.Chunks)) || l.Chunks[i].Gap {
		return nil
	}
	entry, err := p.entry(ctx, l, t, l.Chunks[i].Init)
	if err != nil {
		return err
	}
	size, err := t.heads(ctx, l, msn, entry)
	if err != nil {
		return fmt.Errorf("read segment %d: %w", msn, err)
	}
	p.file.pieces = append(p.file.pieces, piece{rendition, msn, size})
	p.file.Entries = max(p.file.Entries, t.out.Entries())
	return nil
}

// entry returns the number of an init segment's sample entry.
func (p *planner) entry(ctx context.Context, l *Rendition, t *track, n int) (int, error) {
	if e, ok := t.inits[n]; ok {
		return e, nil
	}
	data, err := l.Source.Init(ctx, n)
	if err != nil {
		return 0, fmt.Errorf("read init segment: %w", err)
	}
	in, err := bmff.ParseTrack(bmff.Find(data, "moov", "trak"))
	if err != nil {
		return 0, fmt.Errorf("read init segment %d: %w", n, err)
	}
	if in.Timescale != l.Timescale {
		return 0, fault.New(fault.Internal, "an init segment has %d ticks per second, its rendition %d", in.Timescale,
			l.Timescale)
	}
	if t.out == nil {
		t.out = p.movie.Track(movie.Options{
			Kind:      l.Kind,
			Timescale: l.Timescale,
			Width:     in.Width,
			Height:    in.Height,
			Matrix:    in.Matrix,
			Language:  in.Language,
			Zero:      t.zero,
		})
	}
	t.inits[n] = t.out.Entry(in.Entries[0].Raw)
	return t.inits[n], nil
}

// maxHead bounds the head of a fragment, in bytes.
const maxHead = 16 << 20

// heads tells the movie of a segment's samples. Of the media in it nothing is read that can be passed over.
func (t *track) heads(ctx context.Context, l *Rendition, msn int64, entry int) (size int64, err error) {
	b, err := l.Source.Segment(ctx, msn)
	if err != nil {
		return 0, err
	}
	r, n := b.Open()
	defer func() { _ = r.Close() }() // it was only read
	for at := int64(0); at < n; {
		h, err := header(r)
		if err != nil {
			return 0, err
		}
		long := int64(h.Size)
		if long < int64(h.Len) || long > n-at {
			return 0, bmff.Malformed("box %s of %d bytes in a segment of %d", h.Type, h.Size, n)
		}
		if h.Type.Is("moof") {
			got, err := t.fragment(r, long-int64(h.Len), n-at, entry)
			if err != nil {
				return 0, err
			}
			size += got
		} else if at+long < n {
			if err := pass(r, at+int64(h.Len), long-int64(h.Len)); err != nil {
				return 0, fmt.Errorf("pass over media: %w", err)
			}
		}
		at += long
	}
	return size, nil
}

func header(r io.Reader) (bmff.Header, error) {
	var b [16]byte
	if _, err := io.ReadFull(r, b[:8]); err != nil {
		return bmff.Header{}, fmt.Errorf("read box: %w", err)
	}
	h, err := bmff.ParseHeader(b[:8])
	if errors.Is(err, bmff.ErrTruncated) { // a 64-bit size
		if _, err = io.ReadFull(r, b[8:]); err != nil {
			return h, fmt.Errorf("read box: %w", err)
		}
		h, err = bmff.ParseHeader(b[:])
	}
	return h, err
}

// pass skips n bytes that begin at a place.
func pass(r io.Reader, at, n int64) error {
	if s, ok := r.(io.Seeker); ok {
		_, err := s.Seek(at+n, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, r, n)
	return err
}

// fragment reads a moof of n bytes; left is how many bytes of the segment begin with it.
func (t *track) fragment(r io.Reader, n, left int64, entry int) (size int64, err error) {
	if n > maxHead {
		return 0, bmff.Malformed("moof of %d bytes", n)
	}
	body := make([]byte, n)
	if _, err = io.ReadFull(r, body); err != nil {
		return 0, fmt.Errorf("read moof: %w", err)
	}
	runs, err := bmff.Moof{Body: body, MaxSamples: int(min(left, maxHead))}.Runs()
	if err != nil {
		return 0, err
	}
	for _, run := range runs {
		if run.TrackID != cmaf.TrackID || !run.HasTime {
			return 0, bmff.Malformed("a fragment of track %d", run.TrackID)
		}
		samples := make([]movie.Sample, len(run.Samples))
		for i, s := range run.Samples {
			samples[i] = movie.Sample{
				Duration:          s.Duration,
				CompositionOffset: s.CompositionOffset,
				Sync:              s.Sync,
				Size:              s.Size,
			}
			size += int64(s.Size)
		}
		if err := t.out.Add(entry, run.BaseTime, samples); err != nil {
			return 0, err
		}
	}
	return size, nil
}

// Reader returns the file's bytes. It holds one segment at a time.
func (f *File) Reader(ctx context.Context) io.Reader {
	return &reader{ctx: ctx, f: f, now: f.head, rest: f.pieces}
}

type reader struct {
	ctx  context.Context //nolint:containedctx // io.Reader has no place for it
	f    *File
	now  []byte
	rest []piece
	data []byte // memory of the segment
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.now) == 0 {
		if len(r.rest) == 0 {
			return 0, io.EOF
		}
		if err := r.load(r.rest[0]); err != nil {
			return 0, err
		}
		r.rest = r.rest[1:]
	}
	n := copy(p, r.now)
	r.now = r.now[n:]
	return n, nil
}

// load makes a piece what is read next.
func (r *reader) load(p piece) error {
	b, err := r.f.renditions[p.rendition].Source.Segment(r.ctx, p.msn)
	if err != nil {
		return fmt.Errorf("read segment %d: %w", p.msn, err)
	}
	body, n := b.Open()
	defer func() { _ = body.Close() }() // it was only read
	if n > delivered.MaxSize {
		return fault.New(fault.Internal, "a segment has %d bytes", n)
	}
	r.data = slices.Grow(r.data[:0], int(n))[:n]
	if _, err = io.ReadFull(body, r.data); err != nil {
		return fmt.Errorf("read segment %d: %w", p.msn, err)
	}
	fragments, err := cmaf.ParseFragments(r.data)
	if err != nil {
		return fmt.Errorf("read segment %d: %w", p.msn, err)
	}
	// The media moves to the front: it lies in the same order, and never before where it goes.
	media := r.data[:0]
	for _, f := range fragments {
		for _, s := range f.Samples {
			media = append(media, s.Data...)
		}
	}
	if int64(len(media)) != p.size {
		return fault.New(fault.Unavailable, "segment %d has other media than before", p.msn)
	}
	r.now = media
	return nil
}
