package mp4

import (
	"errors"
	"fmt"
	"io"

	"millrace/internal/media/container/bmff"
)

const (
	maxMoov      = 256 << 20
	maxMoof      = 16 << 20
	maxMoofTotal = 512 << 20
	maxTracks    = 64
	// maxBoxes bounds the boxes at the top of a file: a day in fragments of one picture each has 10 million of moof and
	// mdat.
	maxBoxes = 1 << 24
)

// Index reads the index of a file of size bytes. It costs memory for the moov (at most 256 MiB, given back) and 12 to
// 24 bytes a sample.
func Index(r io.ReaderAt, size int64) (*File, error) {
	x := &indexer{source: source{r: r, size: size}, file: &File{}, left: maxSamples}
	if err := x.scan(); err != nil {
		return nil, err
	}
	if !x.hasMoov {
		if x.media {
			return nil, fmt.Errorf("%w: it has no index (moov), the recording or the upload was not finished",
				ErrTruncated)
		}
		return nil, ErrNotMP4
	}
	for _, f := range x.fragments {
		f.finish()
	}
	if x.file.Fragmented {
		x.file.fromStart()
	}
	return x.file, nil
}

type indexer struct {
	source
	file    *File
	hasMoov bool
	media   bool // a box that only such files have was seen
	left    int  // samples that may still come

	defaults  map[uint32]bmff.Defaults // of a fragmented file
	fragments map[uint32]*fragments
	moof      []byte // read and not yet taken in
	moofAt    int64
	moofTotal int64
}

// scan goes over the boxes at the top of the file.
func (ix *indexer) scan() error {
	at := int64(0)
	for count := 0; at+8 <= ix.size; count++ {
		if count == maxBoxes {
			return fmt.Errorf("%w: more than %d boxes", ErrUnsupported, maxBoxes)
		}
		h, err := ix.header(at)
		if errors.Is(err, bmff.ErrMalformed) {
			return ix.broken(at, err)
		}
		if err != nil {
			return err
		}
		if count == 0 && !opens(h.Type) {
			return ErrNotMP4
		}
		end := at + int64(h.Size)
		if h.Size == 0 || h.Size > uint64(ix.size-at) {
			end = ix.size
		}
		if err := ix.box(h, at, end); err != nil {
			return err
		}
		if ix.hasMoov && !ix.file.Fragmented {
			return nil // what follows is media or nothing
		}
		at = end
	}
	return ix.addMoof(ix.size, true)
}

// broken is a box header that makes no sense. Behind a whole index of fragments it is the tail of a recording that was
// cut off.
func (ix *indexer) broken(at int64, err error) error {
	if at == 0 {
		return ErrNotMP4
	}
	if ix.file.Fragmented {
		ix.file.Truncated = true
		return ix.addMoof(at, true)
	}
	return fmt.Errorf("at byte %d: %w", at, err)
}

// opens reports whether a file may begin with this box.
func opens(c bmff.FourCC) bool {
	for _, known := range [...]string{
		"ftyp", "moov", "mdat", "free", "skip", "wide", "pnot", "styp", "sidx", "uuid", "moof", "PICT", "junk", "emsg",
		"prft", "pdin", "meta",
	} {
		if c.Is(known) {
			return true
		}
	}
	return false
}

func (ix *indexer) box(h bmff.Header, at, end int64) error {
	cut := h.Size > uint64(ix.size-at)
	body := end - at - int64(h.Len)
	switch {
	case h.Type.Is("ftyp"):
		ix.media = true
		b, err := ix.bytes(at+int64(h.Len), min(body, 4096))
		if err != nil {
			return err
		}
		ix.brands(b)
	case h.Type.Is("moov"):
		ix.media = true
		if cut {
			return fmt.Errorf("%w inside its index (moov)", ErrTruncated)
		}
		if ix.hasMoov {
			return nil // the first one counts
		}
		if body > maxMoov {
			return fmt.Errorf("%w: its index has %d bytes, at most %d are read", ErrUnsupported, body, maxMoov)
		}
		b, err := ix.bytes(at+int64(h.Len), body)
		if err != nil {
			return err
		}
		return ix.moov(b)
	case h.Type.Is("moof"):
		ix.media = true
		return ix.fragment(h, at, body, cut)
	case h.Type.Is("mdat"):
		ix.media = true
		if cut && ix.file.Fragmented {
			ix.file.Truncated = true
		}
	}
	return nil
}

func (ix *indexer) brands(b []byte) {
	if len(b) < 8 {
		return
	}
	ix.file.Brands = append(ix.file.Brands, bmff.FourCC(b[:4]).String())
	for b = b[8:]; len(b) >= 4 && len(ix.file.Brands) < 64; b = b[4:] {
		ix.file.Brands = append(ix.file.Brands, bmff.FourCC(b[:4]).String())
	}
}

func (ix *indexer) moov(b []byte) error {
	ix.hasMoov = true
	if bmff.Find(b, "cmov") != nil {
		return fmt.Errorf("%w: its index is compressed (cmov)", ErrUnsupported)
	}
	r := bmff.NewReader(bmff.Find(b, "mvhd"))
	version, _ := r.Full()
	r.Sized(version)
	r.Sized(version)
	ix.file.MovieTimescale = r.U32()
	if r.Err() != nil || ix.file.MovieTimescale == 0 {
		return bmff.Malformed("it has no usable movie header")
	}
	if mvex := bmff.Find(b, "mvex"); mvex != nil {
		ix.file.Fragmented = true
		ix.defaults, ix.fragments = bmff.ParseDefaults(mvex), map[uint32]*fragments{}
	}
	seen := map[uint32]bool{}
	var refused error
	err := bmff.Walk(b, func(box bmff.Box) error {
		if box.Type.Is("trak") {
			refused = ix.add(box.Body, seen)
		}
		return refused
	})
	if refused == nil && len(ix.file.Tracks) > 0 {
		return nil // rubbish behind the tracks hurts nobody
	}
	return err
}

// add takes in a track; seen has the IDs so far.
func (ix *indexer) add(trak []byte, seen map[uint32]bool) error {
	if len(seen) == maxTracks {
		return fmt.Errorf("%w: more than %d tracks", ErrUnsupported, maxTracks)
	}
	t, err := ix.track(trak)
	if err != nil {
		return err
	}
	if t.ID == 0 || seen[t.ID] {
		return bmff.Malformed("two tracks have the ID %d", t.ID)
	}
	seen[t.ID] = true
	if t.FourCC == "" { // neither video nor audio nor text
		return nil
	}
	ix.file.Tracks = append(ix.file.Tracks, t)
	if ix.file.Fragmented {
		ix.fragments[t.ID] = newFragments(t)
	}
	return nil
}
