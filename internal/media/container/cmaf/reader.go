package cmaf

import (
	"errors"
	"fmt"
	"io"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/frame"
)

const maxTracks = 64

// Track is a track of a stream that is read.
type Track struct {
	ID        uint32
	Kind      frame.Kind
	FourCC    string // of the sample entry, as "avc1"
	Timescale uint32 // ticks per second
	Language  string // ISO 639-2, "" undetermined
	Name      string
	// Config is filled for H.264 and AAC; otherwise its Codec is "".
	Config frame.Config
	// SampleEntry is the whole box; LengthSize is what stands before its NAL units, video only.
	SampleEntry []byte
	LengthSize  int
	// Matrix of the track header says how the picture is turned for display; all zeros mean identity.
	Matrix [9]uint32
}

// ReaderOptions bounds a Reader.
type ReaderOptions struct {
	// MaxHeader is the largest moov or moof in bytes, by default 16 MiB.
	MaxHeader int
	// MaxFragment is the largest mdat in bytes, by default 256 MiB.
	MaxFragment int
}

// Reader reads a fragmented MP4 from a stream, as ffmpeg writes it on a pipe with empty_moov. It holds one fragment at
// a time; what it has returned belongs to the caller and is not written to again. It is for one goroutine.
type Reader struct {
	r        io.Reader
	o        ReaderOptions
	at       int64
	err      error
	tracks   []Track
	defaults map[uint32]bmff.Defaults
	next     map[uint32]uint64
	head     [16]byte
}

// NewReader starts before the first byte; nothing is read yet.
func NewReader(r io.Reader, o ReaderOptions) *Reader {
	if o.MaxHeader <= 0 {
		o.MaxHeader = 16 << 20
	}
	if o.MaxFragment <= 0 {
		o.MaxFragment = 256 << 20
	}
	return &Reader{r: r, o: o, next: map[uint32]uint64{}}
}

// Tracks reads up to the moov, unless that has been done, and returns its tracks of video and audio. The error is
// io.EOF when the stream ends in front of it.
func (r *Reader) Tracks() ([]Track, error) {
	for r.tracks == nil && r.err == nil {
		h, err := r.header()
		switch {
		case err != nil:
		case h.Type.Is("moov"):
			err = r.moov(h)
		case h.Type.Is("moof"), h.Type.Is("mdat"):
			err = bmff.Malformed("%s before moov", h.Type)
		default:
			err = r.skip(h)
		}
		r.err = err
	}
	if r.tracks != nil {
		return r.tracks, nil
	}
	return nil, r.err
}

// Next returns the fragments, one per track, of the next moof and mdat. The error is io.EOF at the stream's end between
// boxes, io.ErrUnexpectedEOF inside one, and wraps bmff.ErrMalformed when the stream is none. After an error the same
// one comes back. Offset and Size of the fragments are those in the stream.
func (r *Reader) Next() ([]Fragment, error) {
	if _, err := r.Tracks(); err != nil {
		return nil, err
	}
	if r.err != nil {
		return nil, r.err
	}
	out, err := r.fragment()
	r.err = err
	return out, err
}

func (r *Reader) fragment() ([]Fragment, error) {
	for {
		h, err := r.header()
		if err != nil {
			return nil, err
		}
		if !h.Type.Is("moof") {
			if err = r.skip(h); err != nil {
				return nil, err
			}
			continue
		}
		start := r.at - int64(h.Len)
		moof, err := r.body(h, r.o.MaxHeader)
		if err != nil {
			return nil, err
		}
		if h, err = r.header(); err != nil {
			return nil, unexpected(err)
		}
		if !h.Type.Is("mdat") {
			return nil, bmff.Malformed("%s where the mdat of a fragment should be", h.Type)
		}
		mdatStart := r.at
		data, err := r.body(h, r.o.MaxFragment)
		if err != nil {
			return nil, err
		}
		m := bmff.Moof{
			Body:       moof,
			Start:      start,
			MaxSamples: min(len(moof)+len(data), maxFragmentSamples),
			Defaults:   r.defaults,
		}
		fragments, err := cut(m, data, mdatStart, r.next)
		for i := range fragments {
			fragments[i].Offset, fragments[i].Size = int(start), int(r.at-start)
		}
		return fragments, err
	}
}

// header reads a box header. io.EOF only when not a byte is left.
func (r *Reader) header() (bmff.Header, error) {
	n, err := io.ReadFull(r.r, r.head[:8])
	r.at += int64(n)
	if err != nil {
		return bmff.Header{}, err
	}
	h, err := bmff.ParseHeader(r.head[:8])
	if errors.Is(err, bmff.ErrTruncated) { // a 64-bit size
		n, err = io.ReadFull(r.r, r.head[8:])
		r.at += int64(n)
		if err != nil {
			return h, unexpected(err)
		}
		h, err = bmff.ParseHeader(r.head[:])
	}
	if err == nil && h.Size > 1<<62 {
		err = bmff.Malformed("box %s of %d bytes", h.Type, h.Size)
	}
	return h, err
}

// body reads the rest of a box in steps, so that a size that lies costs no more memory than there are bytes.
func (r *Reader) body(h bmff.Header, limit int) ([]byte, error) {
	if h.Size == 0 {
		return nil, bmff.Malformed("box %s has no size", h.Type)
	}
	n := h.Size - uint64(h.Len)
	if n > uint64(limit) {
		return nil, bmff.Malformed("box %s of %d bytes, the limit is %d", h.Type, n, limit)
	}
	const step = 1 << 20
	b := make([]byte, min(n, step))
	for got := 0; ; {
		k, err := io.ReadFull(r.r, b[got:])
		r.at += int64(k)
		if err != nil {
			return nil, unexpected(err)
		}
		got += k
		if uint64(got) == n {
			return b, nil
		}
		grown := make([]byte, min(n, uint64(2*len(b))))
		copy(grown, b)
		b = grown
	}
}

func (r *Reader) skip(h bmff.Header) error {
	if h.Size == 0 {
		return bmff.Malformed("box %s has no size", h.Type)
	}
	n, err := io.CopyN(io.Discard, r.r, int64(h.Size)-int64(h.Len))
	r.at += n
	return unexpected(err)
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *Reader) moov(h bmff.Header) error {
	body, err := r.body(h, r.o.MaxHeader)
	if err != nil {
		return err
	}
	r.defaults = bmff.ParseDefaults(bmff.Find(body, "mvex"))
	tracks := []Track{}
	err = bmff.Walk(body, func(b bmff.Box) error {
		if !b.Type.Is("trak") {
			return nil
		}
		if len(tracks) == maxTracks {
			return bmff.Malformed("more than %d tracks", maxTracks)
		}
		track, ok, walkErr := parseTrack(b.Body)
		if ok {
			tracks = append(tracks, track)
		}
		return walkErr
	})
	if err != nil {
		return err
	}
	r.tracks = tracks
	return nil
}

// parseTrack reads a trak box; ok is false for a track that is neither picture nor sound.
func parseTrack(trak []byte) (track Track, ok bool, err error) {
	t, err := bmff.ParseTrack(trak)
	if err != nil {
		return Track{}, false, err
	}
	track = Track{ID: t.ID, Timescale: t.Timescale, Language: t.Language, Name: t.Name, Matrix: t.Matrix}
	switch {
	case t.Handler.Is("vide"):
		track.Kind = frame.Video
	case t.Handler.Is("soun"):
		track.Kind = frame.Audio
	default:
		return Track{}, false, nil
	}
	e := t.Entries[0]
	track.FourCC, track.SampleEntry, track.Config.Kind = e.Type.String(), e.Raw, track.Kind
	c, err := bmff.ParseEntry(e)
	if err == nil {
		track.Config, track.LengthSize = c.Config, c.LengthSize
	} else if !errors.Is(err, bmff.ErrUnknownCodec) {
		return Track{}, false, fmt.Errorf("track %d: %w", t.ID, err)
	}
	return track, true, nil
}
