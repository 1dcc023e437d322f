// Package movie writes the head of a progressive MP4, ftyp and the whole moov (ISO 14496-12), so that a player can
// begin before it has the rest ("fast start"). It is told chunk by chunk which samples will follow; their bytes never
// pass through here. Values in, bytes out: it must never know files, sockets, time of day or a logger, and it starts no
// goroutines. A Movie is for one goroutine.
package movie

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/frame"
)

// Sample is one sample that will follow.
type Sample struct {
	Duration          uint32 // ticks; it is decoded for so long
	CompositionOffset int32  // ticks between decoding and showing
	Sync              bool
	Size              uint32 // bytes
}

// Options describe a track.
type Options struct {
	Kind      frame.Kind
	Timescale uint32 // ticks per second, not 0
	Width     uint32 // as presented, 16.16 fixed point; video only
	Height    uint32
	Matrix    [9]uint32 // of the track header; all zeros mean identity
	Language  string    // ISO 639-2; empty: undetermined
	// Zero is when the presentation begins, in ticks of the samples' decoding times: what is shown before it is not.
	Zero int64
}

// Track is a track of a Movie.
type Track struct {
	o       Options
	m       *Movie
	entries [][]byte
	begun   bool
	first   int64 // decoding time of the first sample, in ticks
	shows   int64 // when the first one shown is
	next    int64 // and of the one behind the last
	end     int64 // when the last one shown ends
	sizes   []uint32
	holds   []run // durations
	offsets []run // composition offsets
	shifted bool  // some offset is not 0
	early   bool  // some offset is negative
	syncs   []uint32
	chunks  []chunk
}

// run is a value that several samples in a row have.
type run struct {
	n     uint32
	value uint32
}

// chunk is samples of a track whose bytes lie together.
type chunk struct {
	at      int64 // from the first byte of the media on
	samples uint32
	entry   uint32 // from 1
}

// Movie is a progressive MP4 that is being described.
type Movie struct {
	tracks []*Track
	media  int64 // bytes
}

// ErrOrder says that samples were told of that can't follow the others.
var ErrOrder = errors.New("samples out of order")

// Track adds one. There is at least one when the head is made.
func (m *Movie) Track(o Options) *Track {
	t := &Track{o: o, m: m}
	m.tracks = append(m.tracks, t)
	return t
}

// Entry returns the number of a sample entry, which is the whole box.
func (t *Track) Entry(box []byte) int {
	for i, e := range t.entries {
		if slices.Equal(e, box) {
			return i
		}
	}
	t.entries = append(t.entries, slices.Clone(box))
	return len(t.entries) - 1
}

// Entries is how many there are.
func (t *Track) Entries() int { return len(t.entries) }

// Samples is how many there are.
func (t *Track) Samples() int { return len(t.sizes) }

// Bytes is how many the media of the track has.
func (t *Track) Bytes() int64 {
	var n int64
	for _, s := range t.sizes {
		n += int64(s)
	}
	return n
}

// maxSamples bounds a track: 12 hours at 120 frames a second.
const maxSamples = 6_000_000

// Add says that samples follow whose bytes lie together, the first of which is decoded at a time in ticks. Where that
// is later than the end of those before, the last one before lasts until then; where it is earlier, the last one before
// is cut short.
func (t *Track) Add(entry int, at int64, samples []Sample) error {
	if entry < 0 || entry >= len(t.entries) || len(t.sizes)+len(samples) > maxSamples {
		return fmt.Errorf("%w: entry %d of %d, %d samples behind %d", ErrOrder, entry, len(t.entries), len(samples),
			len(t.sizes))
	}
	if len(samples) == 0 {
		return nil
	}
	if !t.begun {
		t.begun, t.first, t.next, t.shows = true, at, at, math.MaxInt64
	} else if err := t.meet(at); err != nil {
		return err
	}
	t.chunks = append(t.chunks, chunk{t.m.media, uint32(len(samples)), uint32(entry + 1)})
	for _, s := range samples {
		t.sizes = append(t.sizes, s.Size)
		t.holds = count(t.holds, s.Duration)
		t.offsets = count(t.offsets, uint32(s.CompositionOffset))
		t.shifted, t.early = t.shifted || s.CompositionOffset != 0, t.early || s.CompositionOffset < 0
		if s.Sync {
			t.syncs = append(t.syncs, uint32(len(t.sizes)))
		}
		t.shows = min(t.shows, t.next+int64(s.CompositionOffset))
		t.end = max(t.end, t.next+int64(s.CompositionOffset)+int64(s.Duration))
		t.next += int64(s.Duration)
		t.m.media += int64(s.Size)
	}
	return nil
}

// meet makes the last sample end at a time.
func (t *Track) meet(at int64) error {
	if at == t.next {
		return nil
	}
	last := &t.holds[len(t.holds)-1]
	long := int64(last.value) + at - t.next
	if long < 0 || long > math.MaxUint32 {
		return fmt.Errorf("%w: decoded at %d behind %d", ErrOrder, at, t.next)
	}
	if last.n--; last.n == 0 {
		t.holds = t.holds[:len(t.holds)-1]
	}
	t.holds = count(t.holds, uint32(long))
	t.next = at
	return nil
}

func count(runs []run, v uint32) []run {
	if n := len(runs); n > 0 && runs[n-1].value == v {
		runs[n-1].n++
		return runs
	}
	return append(runs, run{1, v})
}

// Media is how many bytes follow the head.
func (m *Movie) Media() int64 { return m.media }

// Seconds is how long the longest track is shown.
func (m *Movie) Seconds() float64 {
	var most float64
	for _, t := range m.tracks {
		most = max(most, float64(t.end-t.o.Zero)/float64(t.o.Timescale))
	}
	return max(most, 0)
}

// Head is everything in front of the media, which follows chunk by chunk as it was added.
func (m *Movie) Head() []byte {
	tracks := slices.DeleteFunc(slices.Clone(m.tracks), func(t *Track) bool { return !t.begun })
	head := ftyp(tracks)
	large := m.media+mdatLarge > math.MaxUint32
	moov := moovOf(tracks, 0, false)
	wide := int64(len(head)+len(moov))+mdatLarge+m.media > math.MaxUint32
	if wide {
		moov = moovOf(tracks, 0, true)
	}
	start := int64(len(head) + len(moov) + mdatSmall)
	if large {
		start += mdatLarge - mdatSmall
	}
	head = append(head, moovOf(tracks, start, wide)...)
	if large {
		head = append(head, bmff.U32(1)...)
		head = append(head, "mdat"...)
		return append(head, u64(uint64(m.media)+mdatLarge)...)
	}
	head = append(head, bmff.U32(uint32(m.media)+mdatSmall)...)
	return append(head, "mdat"...)
}

const mdatSmall, mdatLarge = 8, 16
