package cenc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/Eyevinn/mp4ff/avc"
	library "github.com/Eyevinn/mp4ff/hevc"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/container/bmff"
)

// units divides samples into NAL units. Slices are encrypted behind their headers: ISO/IEC 23001-7 section 9.6.2 wants
// all that a decoder is set up by to be readable without a key.
type units struct {
	lengthSize int
	// headerSize is how many bytes of a NAL unit are in front of slice data; 0: it has no such data. An error: that
	// can't be found out.
	headerSize func(nal []byte) (int, error)
	isSlice    func(nal []byte) bool
}

// Bounds of a slice's header in bytes: as much is read of a NAL unit to find its end, and as much stays clear where it
// can't be found.
const longestHeader, usualHeader = 512, 128

// unitsOf reads a sample entry. ErrUnsupported: it is of no codec with NAL units.
func unitsOf(e bmff.SampleEntry) (*units, error) {
	children := e.Raw[visualEntry:]
	switch {
	case e.Type.Is("avc1"), e.Type.Is("avc3"):
		return h264Units(bmff.Find(children, "avcC"))
	case e.Type.Is("hvc1"), e.Type.Is("hev1"):
		return hevcUnits(bmff.Find(children, "hvcC"))
	}
	return nil, fmt.Errorf("%w: %s", ErrUnsupported, e.Type)
}

func h264Units(avcC []byte) (*units, error) {
	sps, pps, lengthSize, err := h264.ParseAVCC(avcC)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", bmff.ErrMalformed, err)
	}
	spsByID, ppsByID := map[uint32]*avc.SPS{}, map[uint32]*avc.PPS{}
	readSets(sps, func(set []byte) error {
		s, err := avc.ParseSPSNALUnit(set, false)
		if err == nil {
			spsByID[s.ParameterID] = s
		}
		return err
	})
	readSets(pps, func(set []byte) error {
		p, err := avc.ParsePPSNALUnit(set, spsByID)
		if err == nil {
			ppsByID[p.PicParameterSetID] = p
		}
		return err
	})
	return &units{
		lengthSize: lengthSize,
		isSlice:    func(nal []byte) bool { t := h264.Type(nal); return t >= h264.TypeNonIDR && t <= h264.TypeIDR },
		headerSize: func(nal []byte) (int, error) {
			h, err := avc.ParseSliceHeader(nal, spsByID, ppsByID)
			if err != nil {
				return 0, err
			}
			return int(h.Size), nil
		},
	}, nil
}

func hevcUnits(hvcC []byte) (*units, error) {
	_, sps, pps, lengthSize, err := hevc.ParseHVCC(hvcC)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", bmff.ErrMalformed, err)
	}
	spsByID, ppsByID := map[uint32]*library.SPS{}, map[uint32]*library.PPS{}
	readSets(sps, func(set []byte) error {
		s, err := library.ParseSPSNALUnit(set)
		if err == nil {
			spsByID[uint32(s.SpsID)] = s
		}
		return err
	})
	readSets(pps, func(set []byte) error {
		p, err := library.ParsePPSNALUnit(set, spsByID)
		if err == nil {
			ppsByID[p.PicParameterSetID] = p
		}
		return err
	})
	return &units{
		lengthSize: lengthSize,
		isSlice:    func(nal []byte) bool { t := hevc.Type(nal); return t >= 0 && t < hevc.TypeVPS },
		headerSize: func(nal []byte) (int, error) {
			h, err := library.ParseSliceHeader(nal, spsByID, ppsByID)
			if err != nil {
				return 0, err
			}
			return int(h.Size), nil
		},
	}, nil
}

// readSets reads parameter sets. One that can't be read is left out: slices that use it are encrypted behind
// usualHeader bytes.
func readSets(all [][]byte, read func([]byte) error) {
	for _, set := range all {
		_ = guarded(func() error { return read(set) })
	}
}

// guarded keeps a panic of the library that reads outside bytes from taking the process down.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", bmff.ErrMalformed, r)
		}
	}()
	return f()
}

// lead is how many bytes of a NAL unit stay clear.
func (u *units) lead(nal []byte) int {
	if !u.isSlice(nal) {
		return len(nal)
	}
	n := 0
	err := guarded(func() (err error) {
		n, err = u.headerSize(nal[:min(len(nal), longestHeader)])
		return err
	})
	if err != nil || n <= 0 || n >= longestHeader {
		n = usualHeader
	}
	return min(n, len(nal))
}

// subsample is a stretch of a sample, section 9.5.1.
type subsample struct{ clear, protected int }

// errUnits means that a sample is not made of NAL units as its init segment says.
var errUnits = errors.New("the NAL units of a sample do not add up to it")

// divide appends the subsamples of a sample. Their protected stretches are whole blocks where whole is set.
func (u *units) divide(out []subsample, sample []byte, whole bool) ([]subsample, error) {
	at, open := 0, 0 // open: bytes since the last protected one
	for at < len(sample) {
		n, ok := u.length(sample[at:])
		if !ok || n > len(sample)-at-u.lengthSize {
			return out, errUnits
		}
		at += u.lengthSize
		protected := n - u.lead(sample[at:at+n])
		if whole {
			protected &^= blockSize - 1
		}
		open += u.lengthSize + n
		if protected >= blockSize {
			out = add(out, open-protected, protected)
			open = 0
		}
		at += n
	}
	if open > 0 {
		out = add(out, open, 0)
	}
	return out, nil
}

// length reads the size of a NAL unit.
func (u *units) length(b []byte) (int, bool) {
	if len(b) < u.lengthSize {
		return 0, false
	}
	var word [4]byte
	copy(word[4-u.lengthSize:], b[:u.lengthSize])
	n := binary.BigEndian.Uint32(word[:])
	return int(n), n <= 1<<30
}

// mostClear is the largest BytesOfClearData.
const mostClear = 1<<16 - 1

func add(out []subsample, open, protected int) []subsample {
	for ; open > mostClear; open -= mostClear {
		out = append(out, subsample{clear: mostClear})
	}
	return append(out, subsample{open, protected})
}

// errClear means that so much of a sample would have to stay clear that decrypters can't be told of it.
var errClear = errors.New("a picture of more than 2 MB in too many slices")

// merged has a sample, whose subsamples are those of all from one on, make do with most of them: the smallest protected
// stretches stay clear, and add to the clear part of the one behind them. A protected stretch may not reach from one
// NAL unit into the next, whose header has to be readable. errClear: no stretch could stay protected.
func merged(all []subsample, from, most int) ([]subsample, error) {
	had := all[from:]
	if len(had) <= most {
		return all, nil
	}
	bySize := make([]int, 0, len(had)) // of those that are protected, largest first
	for i, s := range had {
		if s.protected > 0 {
			bySize = append(bySize, i)
		}
	}
	slices.SortStableFunc(bySize, func(a, b int) int { return had[b].protected - had[a].protected })
	kept := make([]bool, len(had))
	for keep := min(most, len(bySize)); keep > 0; {
		clear(kept)
		for _, i := range bySize[:keep] {
			kept[i] = true
		}
		var out []subsample
		open := 0
		for i, s := range had {
			if open += s.clear; kept[i] {
				out, open = add(out, open, s.protected), 0
			} else {
				open += s.protected
			}
		}
		if open > 0 {
			out = add(out, open, 0)
		}
		if len(out) <= most {
			return append(all[:from], out...), nil
		}
		keep -= len(out) - most
	}
	return all, errClear
}
