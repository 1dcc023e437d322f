package mp4

import (
	"fmt"
	"io"
	"slices"
	"time"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// MaxRead is the most bytes that one ReadSamples returns.
const MaxRead = 256 << 20

const (
	// maxHole is the largest hole between two samples that is read along: another track's chunk. One read is cheaper
	// than two.
	maxHole = 64 << 10
	// maxRun bounds what one read brings.
	maxRun = 8 << 20
	// peekSize is how much of a sample is looked at to find its first slice.
	peekSize = 64
)

// ReadSamples reads samples from to to-1 of t in as few reads as makes sense. They share one buffer that belongs to the
// caller. DTS of the first is t.DTS(from). ErrTooLarge above MaxRead bytes.
func ReadSamples(r io.ReaderAt, t *Track, from, to int) ([]cmaf.Sample, error) {
	if from < 0 || to < from || to > t.Len() {
		return nil, fmt.Errorf("read samples %d to %d of %d: out of range", from, to, t.Len())
	}
	total := int64(0)
	for i := from; i < to; i++ {
		total += int64(t.samples.sizes[i])
	}
	if total > MaxRead {
		return nil, fmt.Errorf("%w: samples %d to %d have %d, at most %d", ErrTooLarge, from, to, total, MaxRead)
	}
	buf := make([]byte, total)
	out := make([]cmaf.Sample, to-from)
	pos := int64(0)
	for i := range out {
		s := t.Sample(from + i)
		end := pos + int64(s.Size)
		out[i] = cmaf.Sample{Duration: s.Duration, CompositionOffset: s.CTS, Sync: s.Sync, Data: buf[pos:end:end]}
		pos = end
	}
	_, err := ReadBytes(r, t, from, to, buf, nil)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ReadBytes fills buf, which is as long as they are, with the bytes of samples from to to-1 of t, one after the other.
// What it needs beside that is scratch, grown if need be; it is given back to be used again.
func ReadBytes(r io.ReaderAt, t *Track, from, to int, buf, scratch []byte) ([]byte, error) {
	for i := from; i < to; {
		j, length, payload := t.run(i, to)
		at := t.samples.offsets[i]
		into := buf[:payload]
		if payload != length { // holes: what is between goes with them, and is left out afterwards
			if int64(cap(scratch)) < length {
				scratch = make([]byte, length)
			}
			into = scratch[:length]
		}
		if err := readFull(r, into, at); err != nil {
			return scratch, fmt.Errorf("read samples %d to %d: %w", i, j, err)
		}
		if payload != length {
			for to := buf; i < j; i++ {
				start := t.samples.offsets[i] - at
				to = to[copy(to, into[start:start+int64(t.samples.sizes[i])]):]
			}
		}
		buf = buf[payload:]
		i = j
	}
	return scratch, nil
}

// Extent is a stretch of bytes of a file.
type Extent struct{ Offset, Length int64 }

// Layout returns samples from to to-1 of t without their bytes, and where those are, in the samples' order. ErrTooLarge
// as in ReadSamples.
func Layout(t *Track, from, to int) ([]cmaf.Sample, []Extent, error) {
	if from < 0 || to < from || to > t.Len() {
		return nil, nil, fmt.Errorf("lay out samples %d to %d of %d: out of range", from, to, t.Len())
	}
	out := make([]cmaf.Sample, to-from)
	var extents []Extent
	total := int64(0)
	for i := range out {
		s := t.Sample(from + i)
		out[i] = cmaf.Sample{Duration: s.Duration, CompositionOffset: s.CTS, Sync: s.Sync, Size: s.Size}
		at, size := t.samples.offsets[from+i], int64(s.Size)
		total += size
		if n := len(extents); n > 0 && extents[n-1].Offset+extents[n-1].Length == at {
			extents[n-1].Length += size
		} else if size > 0 {
			extents = append(extents, Extent{at, size})
		}
	}
	if total > MaxRead {
		return nil, nil, fmt.Errorf("%w: samples %d to %d have %d, at most %d", ErrTooLarge, from, to, total, MaxRead)
	}
	return out, extents, nil
}

// run finds how many samples from i on one read brings: up to j, length bytes in the file of which payload are theirs.
func (t *Track) run(i, to int) (j int, length, payload int64) {
	s := &t.samples
	length = int64(s.sizes[i])
	payload = length
	for j = i + 1; j < to; j++ {
		hole := s.offsets[j] - s.offsets[i] - length
		grown := length + hole + int64(s.sizes[j])
		if hole < 0 || hole > maxHole || grown > maxRun {
			break
		}
		length = grown
		payload += int64(s.sizes[j])
	}
	return j, length, payload
}

// IDRs returns which sync samples of an H.264 track are IDR pictures, in order: at others (open GOP) decoding can't
// begin without losing pictures. It reads some 64 bytes of each.
func IDRs(r io.ReaderAt, t *Track) ([]int, error) {
	if t.Config.Codec != frame.H264 {
		return nil, fmt.Errorf("find IDRs of %s: %w", t.FourCC, ErrUnsupported)
	}
	var out []int
	buf := make([]byte, peekSize)
	for i := range t.Len() {
		if !t.Sync(i) {
			continue
		}
		idr, err := t.isIDR(r, i, buf)
		if err != nil {
			return nil, fmt.Errorf("read sample %d: %w", i+1, err)
		}
		if idr {
			out = append(out, i)
		}
	}
	return out, nil
}

// isIDR walks from NAL unit to NAL unit up to the first slice; what stands before it is a few units at most.
func (t *Track) isIDR(r io.ReaderAt, i int, buf []byte) (bool, error) {
	offset, size := t.samples.offsets[i], int64(t.samples.sizes[i])
	const maxSteps = 64
	for range maxSteps {
		n := min(peekSize, size)
		if n <= 0 {
			return false, nil
		}
		if err := readFull(r, buf[:n], offset); err != nil {
			return false, err
		}
		idr, known, at := h264.IsIDRPrefix(buf[:n], t.LengthSize)
		if known {
			return idr, nil
		}
		if at == 0 { // not even a NAL unit header fits
			return false, nil
		}
		offset, size = offset+at, size-at
	}
	return false, nil
}

// Intact reports whether decoders make pictures of all samples of an H.264 track that begin before a time, as
// h264.Inspector tells. It reads the beginning of each NAL unit, 512 bytes at most.
func Intact(r io.ReaderAt, t *Track, before time.Duration) (bool, error) {
	c := t.Config
	inspector := h264.NewInspector(t.LengthSize, append([][]byte{c.SPS, c.PPS}, c.Sets...)...)
	buf := make([]byte, inspected)
	for i := range t.Len() {
		if float64(t.DTS(i)) >= before.Seconds()*float64(t.Timescale) {
			break
		}
		if whole, err := t.intact(r, i, inspector, buf); !whole || err != nil {
			return false, err
		}
	}
	return true, nil
}

// IntactSound reports whether decoders take all samples of an AAC track that begin before a time, counted from where
// its pause ends, as aac.Inspector tells: what it does not know they may take all the same.
func IntactSound(r io.ReaderAt, t *Track, before time.Duration) (bool, error) {
	inspector := aac.NewInspector(t.Config.ASC)
	if inspector == nil {
		return false, nil
	}
	end := float64(t.EmptyEdit) + before.Seconds()*float64(t.Timescale)
	var block []byte
	for i := range t.Len() {
		if float64(t.DTS(i)) >= end {
			break
		}
		n := int(t.samples.sizes[i])
		if n > aac.MaxBlock {
			return false, nil
		}
		block = slices.Grow(block[:0], n)[:n]
		if err := readFull(r, block, t.samples.offsets[i]); err != nil {
			return false, fmt.Errorf("read sample %d: %w", i+1, err)
		}
		if !inspector.Intact(block) {
			return false, nil
		}
	}
	return true, nil
}

// inspected is how many bytes are read of a NAL unit, with its length and where there are as many; maxUnits is how many
// units of a sample are looked at.
const inspected, maxUnits = 512, 256

// intact walks over the NAL units of a sample.
func (t *Track) intact(r io.ReaderAt, i int, inspector *h264.Inspector, buf []byte) (bool, error) {
	offset, left := t.samples.offsets[i], int64(t.samples.sizes[i])
	whole := left == 0 // there is nothing to refuse
	for range maxUnits {
		if left == 0 {
			break
		}
		b := buf[:min(int64(len(buf)), left)]
		if err := readFull(r, b, offset); err != nil {
			return false, fmt.Errorf("read sample %d: %w", i+1, err)
		}
		if len(b) < t.LengthSize {
			return false, nil
		}
		n := int64(0)
		for _, c := range b[:t.LengthSize] {
			n = n<<8 | int64(c)
		}
		if n += int64(t.LengthSize); n > left {
			return false, nil
		}
		whole = inspector.Readable(b[t.LengthSize:min(int64(len(b)), n)]) || whole
		offset, left = offset+n, left-n
	}
	return whole || left > 0, nil
}

// InitOptions describe the init segment that goes with the own samples of t, which is video or audio.
func InitOptions(t *Track) cmaf.InitOptions {
	return cmaf.InitOptions{
		Kind: t.Kind, SampleEntry: t.SampleEntry, Timescale: t.Timescale,
		Width: t.shownW, Height: t.shownH, Matrix: t.matrix, Language: t.Language,
	}
}

// InitSegment makes that CMAF init segment: track ID 1, t's timescale and rotation, no edit list.
func InitSegment(t *Track) []byte { return cmaf.InitFromEntry(InitOptions(t)) }
