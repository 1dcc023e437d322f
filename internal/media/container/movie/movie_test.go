package movie

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
)

// entry is a sample entry that needs no codec to be read.
func entry(typ string) []byte {
	if typ == "ac-3" {
		return bmff.Make(typ, make([]byte, 28))
	}
	return bmff.Make(typ, make([]byte, 78))
}

// picture and sound are tracks that begin before and behind the presentation's begin.
func picture(m *Movie) *Track {
	return m.Track(Options{Kind: frame.Video, Timescale: 90000, Width: 640 << 16, Height: 360 << 16, Zero: 900_000})
}

func sound(m *Movie) *Track {
	return m.Track(Options{Kind: frame.Audio, Timescale: 48000, Zero: 480_000, Language: "deu"})
}

func add(t *testing.T, tr *Track, e int, at int64, samples ...Sample) {
	t.Helper()
	if err := tr.Add(e, at, samples); err != nil {
		t.Fatal(err)
	}
}

// index reads a file of this head and zeros.
func index(t *testing.T, m *Movie) (*mp4.File, []byte) {
	t.Helper()
	head := m.Head()
	whole := append(bytes.Clone(head), make([]byte, m.Media())...)
	f, err := mp4.Index(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	return f, head
}

// TestHead reads what was written: every sample has its times, its place and its size.
func TestHead(t *testing.T) {
	t.Parallel()
	m := &Movie{}
	v, a := picture(m), sound(m)
	if v.Entry(entry("vp08")) != 0 || a.Entry(entry("ac-3")) != 0 {
		t.Fatal("an entry that is there is not known again")
	}
	add(t, v, 0, 900_000-6000, Sample{3000, 6000, true, 100}, Sample{3000, 9000, false, 50})
	add(t, a, 0, 480_000-1024, Sample{1024, 0, true, 7}, Sample{1024, 0, true, 8})
	add(t, v, 0, 900_000+3000, Sample{3000, 3000, true, 200}) // 3000 ticks later than the last one ends
	add(t, a, 0, 480_000+1024, Sample{1024, 0, true, 9})
	f, head := index(t, m)
	if len(f.Tracks) != 2 || f.Fragmented || len(f.Brands) == 0 || f.Brands[0] != "mp42" {
		t.Fatalf("%+v", f)
	}
	p, s := f.Tracks[0], f.Tracks[1]
	if p.Len() != 3 || p.PTS(0) != 0 || p.DTS(0) != -6000 || p.Sample(1).Duration != 6000 || p.PTS(2) != 6000 ||
		p.NonStandardEdit {
		t.Errorf("picture: %d samples, %d %d, %+v, %d", p.Len(), p.PTS(0), p.DTS(0), p.Sample(1), p.PTS(2))
	}
	if s.Len() != 3 || s.PTS(0) != -1024 || s.PTS(1) != 0 || s.Language != "deu" {
		t.Errorf("sound: %d samples, first at %d and %d", s.Len(), s.PTS(0), s.PTS(1))
	}
	at := int64(len(head))
	for _, want := range []struct {
		tr   *mp4.Track
		i    int
		size int64
	}{{p, 0, 100}, {p, 1, 50}, {s, 0, 7}, {s, 1, 8}, {p, 2, 200}, {s, 2, 9}} {
		_, extents, err := mp4.Layout(want.tr, want.i, want.i+1)
		if err != nil || len(extents) != 1 || extents[0].Offset != at || extents[0].Length != want.size {
			t.Errorf("sample %d of track %d: %+v, %v, want %d bytes at %d", want.i, want.tr.ID, extents, err, want.size,
				at)
		}
		at += want.size
	}
	if !p.Sample(0).Sync || p.Sample(1).Sync || !p.Sample(2).Sync || m.Seconds() < 0.099 || m.Seconds() > 0.101 {
		t.Errorf("key frames or length wrong: %v", m.Seconds())
	}
}

// TestLateSound begins later than the picture: it waits.
func TestLateSound(t *testing.T) {
	t.Parallel()
	m := &Movie{}
	v, a := picture(m), sound(m)
	v.Entry(entry("vp08"))
	a.Entry(entry("ac-3"))
	add(t, v, 0, 900_000, Sample{90000, 0, true, 1})
	add(t, a, 0, 480_000+24_000, Sample{24_000, 0, true, 1})
	f, _ := index(t, m)
	if s := f.Tracks[1]; s.PTS(0) != 24_000 || s.NonStandardEdit {
		t.Errorf("sound begins at %d", s.PTS(0))
	}
}

// TestLatePicture is decoded at the beginning and shown later: it waits in an empty edit, as players do not all go by
// the offset to showing.
func TestLatePicture(t *testing.T) {
	t.Parallel()
	m := &Movie{}
	v, a := picture(m), sound(m)
	v.Entry(entry("vp08"))
	a.Entry(entry("ac-3"))
	add(t, v, 0, 900_000-6000, Sample{180_000, 186_000, true, 1}, Sample{3000, 9000, false, 1}, Sample{
		3000, 3000, false, 1,
	})
	add(t, a, 0, 480_000, Sample{48_000, 0, true, 1}, Sample{96_000, 0, true, 1})
	f, _ := index(t, m)
	p := f.Tracks[0]
	if p.EmptyEdit != 180_000 || p.PTS(0) != 180_000 || p.MediaTime != 186_000 || p.NonStandardEdit {
		t.Errorf("the picture begins at %d behind an empty edit of %d, at media time %d", p.PTS(0), p.EmptyEdit,
			p.MediaTime)
	}
}

// TestAlone leaves a track out that has nothing, and is an M4A.
func TestAlone(t *testing.T) {
	t.Parallel()
	m := &Movie{}
	a := sound(m)
	sound(m)
	a.Entry(entry("ac-3"))
	add(t, a, 0, 480_000, Sample{1024, 0, true, 1}, Sample{1024, 0, true, 1})
	f, head := index(t, m)
	if len(f.Tracks) != 1 || f.Brands[0] != "M4A " || bytes.Contains(head, []byte("stss")) ||
		bytes.Contains(head, []byte("ctts")) {
		t.Errorf("%+v", f)
	}
}

// TestLarge counts 64 bits where 32 don't do, and only there.
func TestLarge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		chunks   int // of 2 GiB
		co64, xl bool
	}{{1, false, false}, {3, true, true}} {
		m := &Movie{}
		v := picture(m)
		v.Entry(entry("vp08"))
		for i := range tt.chunks {
			add(t, v, 0, 900_000+int64(i)*90_000*20_000, Sample{90_000 * 20_000, 0, true, 1 << 31}) // five hours each
		}
		head := m.Head()
		if got := bytes.Contains(head, []byte("co64")); got != tt.co64 ||
			bytes.Contains(head, []byte("stco")) == tt.co64 {
			t.Errorf("%d chunks: co64 %t", tt.chunks, got)
		}
		if tt.xl {
			tail := head[len(head)-16:]
			if binary.BigEndian.Uint32(tail) != 1 || binary.BigEndian.Uint64(tail[8:]) != uint64(m.Media())+16 {
				t.Errorf("mdat %x", tail)
			}
			at := bytes.Index(head, []byte("co64"))
			if first := binary.BigEndian.Uint64(head[at+12:]); first != uint64(len(head)) {
				t.Errorf("the first chunk is said to be at %d, it is at %d", first, len(head))
			}
			if elst := bytes.Index(head, []byte("elst")); head[elst+4] != 1 {
				t.Error("an edit of 15 hours in 32 bits")
			}
		} else if binary.BigEndian.Uint32(head[len(head)-8:]) != uint32(m.Media())+8 {
			t.Errorf("mdat %x", head[len(head)-8:])
		}
	}
}

// TestOrder refuses what can't be written.
func TestOrder(t *testing.T) {
	t.Parallel()
	m := &Movie{}
	v := picture(m)
	if err := v.Add(0, 0, []Sample{{1, 0, true, 1}}); !errors.Is(err, ErrOrder) {
		t.Errorf("a sample without an entry: %v", err)
	}
	v.Entry(entry("vp08"))
	add(t, v, 0, 900_000, Sample{3000, 0, true, 1})
	if err := v.Add(0, 900_000+2000, []Sample{{3000, 0, true, 1}}); err != nil { // cuts the last one short
		t.Error(err)
	}
	if err := v.Add(0, 800_000, []Sample{{3000, 0, true, 1}}); !errors.Is(err, ErrOrder) {
		t.Errorf("a sample before the others: %v", err)
	}
	if v.Samples() != 2 || v.Bytes() != 2 || v.Entries() != 1 {
		t.Errorf("%d samples, %d bytes", v.Samples(), v.Bytes())
	}
	if v.Entry(entry("vp09")) != 1 {
		t.Error("another entry is the same")
	}
}
