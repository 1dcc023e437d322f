package download

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"testing/iotest"

	"millrace/internal/fault"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/delivered"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// memory has a rendition's segments in memory.
type memory struct {
	inits    [][]byte
	segments map[int64][]byte
	read     int  // bytes of segments that were read
	plain    bool // its readers can't seek
	changed  bool // its media is another one now
}

func (m *memory) Init(_ context.Context, n int) ([]byte, error) { return m.inits[n], nil }

type counted struct {
	*bytes.Reader
	s *memory
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.s.read += n
	return n, err
}

func (counted) Close() error { return nil }

func (m *memory) Segment(_ context.Context, msn int64) (delivered.Body, error) {
	data, ok := m.segments[msn]
	if !ok {
		return delivered.Body{}, fault.New(fault.NotFound, "no such segment")
	}
	if m.changed {
		data = data[:len(data)-1]
	}
	r := counted{bytes.NewReader(data), m}
	if m.plain {
		return delivered.Body{Reader: io.NopCloser(iotest.HalfReader(r)), Size: int64(len(data))}, nil
	}
	return delivered.Body{Reader: r, Size: int64(len(data))}, nil
}

const scale = 1000 // ticks per second of everything here

func start(kind frame.Kind, mark byte) []byte {
	o := cmaf.InitOptions{Kind: kind, Timescale: scale, Width: 64 << 16, Height: 36 << 16}
	o.SampleEntry = bmff.Make("vp08", make([]byte, 77), []byte{mark})
	if kind == frame.Audio {
		o.SampleEntry = bmff.Make("ac-3", make([]byte, 27), []byte{mark})
	}
	return cmaf.InitFromEntry(o)
}

// rendition makes segments of a second each from second 10 on, of `per` samples in two fragments, whose bytes say which
// they are.
func rendition(kind frame.Kind, per int, gaps ...int64) (Rendition, *memory) {
	s := &memory{inits: [][]byte{start(kind, 1), start(kind, 2)}, segments: map[int64][]byte{}}
	l := Rendition{Kind: kind, Timescale: scale, First: 3, Source: s}
	for k := range int64(4) {
		c := timeline.Chunk{Time: (10 + k) * scale, Duration: scale}
		for _, g := range gaps {
			c.Gap = c.Gap || g == k
		}
		l.Chunks = append(l.Chunks, c)
		if c.Gap {
			continue
		}
		var samples []cmaf.Sample
		for i := range per {
			samples = append(samples, cmaf.Sample{
				Duration: uint32(scale / per), Sync: kind == frame.Audio || i == 0,
				Data: bytes.Repeat([]byte{byte(kind)<<6 | byte(k)<<4 | byte(i)}, 3+i),
			})
		}
		half := per / 2
		b := bmff.Make("styp", []byte("msdh"))
		b = cmaf.AppendFragment(b, 1, cmaf.TrackID, uint64(c.Time), samples[:half])
		s.segments[3+k] = cmaf.AppendFragment(b, 2, cmaf.TrackID, uint64(c.Time)+uint64(half*scale/per), samples[half:])
	}
	return l, s
}

func write(t *testing.T, zero float64, renditions ...Rendition) (*File, []byte, *mp4.File) {
	t.Helper()
	f, err := Plan(t.Context(), zero, renditions)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(iotest.OneByteReader(f.Reader(t.Context())))
	if err != nil || int64(len(data)) != f.Size() {
		t.Fatalf("%d bytes of %d: %v", len(data), f.Size(), err)
	}
	x, err := mp4.Index(bytes.NewReader(data), f.Size())
	if err != nil {
		t.Fatal(err)
	}
	return f, data, x
}

// TestFile writes a file and reads every sample of it: none is missing, each has its bytes and its time.
func TestFile(t *testing.T) {
	t.Parallel()
	for name, plain := range map[string]bool{"seekers": false, "streams": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			video, vs := rendition(frame.Video, 5)
			audio, as := rendition(frame.Audio, 10)
			vs.plain, as.plain = plain, plain
			f, data, x := write(t, 10, video, audio)
			if f.Seconds != 4 || f.Entries != 1 || len(x.Tracks) != 2 {
				t.Fatalf("%v s, %d entries, %d tracks", f.Seconds, f.Entries, len(x.Tracks))
			}
			for n, per := range []int{5, 10} {
				tr := x.Tracks[n]
				if tr.Len() != 4*per {
					t.Fatalf("track %d has %d samples", n, tr.Len())
				}
				samples, err := mp4.ReadSamples(bytes.NewReader(data), tr, 0, tr.Len())
				if err != nil {
					t.Fatal(err)
				}
				for i, s := range samples {
					k := i % per
					want := bytes.Repeat([]byte{byte(tr.Kind)<<6 | byte(i/per)<<4 | byte(k)}, 3+k)
					if !bytes.Equal(s.Data, want) || tr.PTS(i) != int64(i*scale/per) || s.Sync != (n == 1 || k == 0) {
						t.Errorf("track %d: sample %d at %d, sync %t: %x", n, i, tr.PTS(i), s.Sync, s.Data)
					}
				}
			}
			again, _, _ := write(t, 10, video, audio)
			if !bytes.Equal(again.head, f.head) {
				t.Error("a second time it is another file")
			}
		})
	}
}

// TestHeadsOnly says that planning passes over the media.
func TestHeadsOnly(t *testing.T) {
	t.Parallel()
	video, s := rendition(frame.Video, 2)
	big := bytes.Repeat([]byte{1}, 1<<20)
	for msn := range s.segments {
		s.segments[msn] = cmaf.AppendFragment(nil, 1, cmaf.TrackID, uint64(7+msn)*scale, []cmaf.Sample{
			{Duration: scale, Sync: true, Data: big},
		})
	}
	if _, err := Plan(t.Context(), 10, []Rendition{video}); err != nil || s.read > 4096 {
		t.Errorf("%d bytes read of 4 MiB: %v", s.read, err)
	}
}

// TestHoles: what is in front of a gap lasts longer, a late begin waits, and both tracks stay in step.
func TestHoles(t *testing.T) {
	t.Parallel()
	video, _ := rendition(frame.Video, 5, 2)
	audio, _ := rendition(frame.Audio, 10, 0)
	f, _, x := write(t, 10, video, audio)
	v, a := x.Tracks[0], x.Tracks[1]
	if v.Len() != 15 || v.PTS(10) != 3*scale || v.Sample(9).Duration != scale+scale/5 || a.Len() != 30 ||
		a.PTS(0) != scale || f.Seconds != 4 {
		t.Errorf("picture %d, %d, %+v; sound %d, %d; %v s", v.Len(), v.PTS(10), v.Sample(9), a.Len(), a.PTS(0),
			f.Seconds)
	}
}

// TestMiddle begins in the middle of a segment: nothing is lost, the edit list says where to begin.
func TestMiddle(t *testing.T) {
	t.Parallel()
	video, _ := rendition(frame.Video, 5)
	audio, _ := rendition(frame.Audio, 10)
	f, _, x := write(t, 10.4, video, audio)
	if v, a := x.Tracks[0], x.Tracks[1]; v.PTS(0) != -400 || a.PTS(0) != -400 || math.Abs(f.Seconds-3.6) > 1e-9 {
		t.Errorf("picture from %d, sound from %d, %v s", v.PTS(0), a.PTS(0), f.Seconds)
	}
}

// TestEntries keeps apart what needs another decoder, and does not where only the number of the init segment is
// another.
func TestEntries(t *testing.T) {
	t.Parallel()
	video, s := rendition(frame.Video, 5)
	video.Chunks[2].Init, video.Chunks[3].Init = 1, 1
	if f, _, _ := write(t, 10, video); f.Entries != 2 {
		t.Errorf("%d entries of 2", f.Entries)
	}
	s.inits[1] = s.inits[0]
	if f, _, _ := write(t, 10, video); f.Entries != 1 {
		t.Errorf("%d entries of 1", f.Entries)
	}
}

// TestRefused ends in errors, never in a file that is not whole.
func TestRefused(t *testing.T) {
	t.Parallel()
	empty, _ := rendition(frame.Video, 2, 0, 1, 2, 3)
	if _, err := Plan(t.Context(), 10, []Rendition{empty}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("nothing but gaps: %v", err)
	}
	lost, s := rendition(frame.Video, 2)
	delete(s.segments, 5)
	if _, err := Plan(t.Context(), 10, []Rendition{lost}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a segment is missing: %v", err)
	}
	slow, _ := rendition(frame.Video, 2)
	slow.Timescale = 7
	if _, err := Plan(t.Context(), 10, []Rendition{slow}); fault.KindOf(err) != fault.Internal {
		t.Errorf("another time scale: %v", err)
	}
	other, s := rendition(frame.Video, 2)
	f, err := Plan(t.Context(), 10, []Rendition{other})
	if err != nil {
		t.Fatal(err)
	}
	s.changed = true
	if _, err := io.ReadAll(f.Reader(t.Context())); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("the media has changed: %v", err)
	}
}

// FuzzSegment says that a broken segment is an error, and that what is planned can be written.
func FuzzSegment(f *testing.F) {
	_, s := rendition(frame.Video, 4)
	f.Add(s.segments[3])
	f.Add(s.segments[3][:40])
	f.Add([]byte("\x00\x00\x00\x01moof\x00\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		x := &memory{inits: [][]byte{start(frame.Video, 1)}, segments: map[int64][]byte{0: data}}
		file, err := Plan(t.Context(), 10, []Rendition{
			{Kind: frame.Video, Timescale: scale, Chunks: []timeline.Chunk{{}}, Source: x},
		})
		if err != nil {
			return
		}
		n, err := io.Copy(io.Discard, file.Reader(t.Context()))
		if err == nil && n != file.Size() {
			t.Errorf("%d bytes of %d", n, file.Size())
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
	})
}
