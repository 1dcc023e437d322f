package mp4_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
)

func with(t trak, change func(*trak)) trak {
	change(&t)
	return t
}

func TestIndexRefuses(t *testing.T) {
	t.Parallel()
	ok := video(10, 100)
	good := file(1000, ok)
	frag := bmff.Make("moov", mvhd(), with(ok, func(x *trak) { x.n, x.stts = 0, bmff.U32(0) }).box(), bmff.Make("mvex"))
	for name, tt := range map[string]struct {
		b    []byte
		want error
		say  string
	}{
		"empty":          {nil, mp4.ErrNotMP4, ""},
		"text":           {[]byte("<html><body>hello there, this is no video</body></html>"), mp4.ErrNotMP4, ""},
		"matroska":       {[]byte("\x1a\x45\xdf\xa3\x01\x00\x00\x00\x00\x00\x00\x23"), mp4.ErrNotMP4, ""},
		"header smaller": {[]byte("\x00\x00\x00\x04ftypisom"), mp4.ErrNotMP4, ""},
		"no moov": {
			append(bmff.Make("ftyp", []byte("isom\x00\x00\x00\x00")), bmff.Make("mdat", make([]byte, 50))...),
			mp4.ErrTruncated, "not finished",
		},
		"moov cut":  {good[:200], mp4.ErrTruncated, "moov"},
		"media cut": {good[:len(good)-500], mp4.ErrTruncated, "sample 6 would lie beyond"},
		"compressed": {
			bmff.Make("moov", bmff.Make("cmov", bmff.Make("dcom"))), mp4.ErrUnsupported, "compressed",
		},
		"no movie header": {bmff.Make("moov", ok.box()), mp4.ErrMalformed, "movie header"},
		"offset past the end": {
			file(1000, with(ok, func(x *trak) { x.offset = 1 << 30 })), mp4.ErrTruncated, "sample 1",
		},
		"64 bit offset": {file(1000, with(ok, func(x *trak) {
			x.chunks, x.more = bmff.U32(0), bmff.Full("co64", 0, 0, bmff.U32(1, 0xffffffff, 0xffffffff))
		})), mp4.ErrTruncated, "sample 1"},
		"too few chunks": {
			file(1000, with(ok, func(x *trak) { x.stsc = bmff.U32(1, 1, 4, 1) })), mp4.ErrMalformed,
			"sample 5 of 10 is in no chunk",
		},
		"chunks out of order": {
			file(1000, with(ok, func(x *trak) { x.stsc = bmff.U32(2, 9, 4, 1, 3, 4, 1) })), mp4.ErrMalformed,
			"not in order",
		},
		"huge size count": {
			file(1000, with(ok, func(x *trak) { x.stsz = bmff.U32(0, 0xffffffff, 1) })), mp4.ErrMalformed,
			"stsz claims",
		},
		"huge fixed count": {
			file(1000, with(ok, func(x *trak) { x.stsz = bmff.U32(1, 0xffffffff) })), mp4.ErrMalformed,
			"more than the file has",
		},
		"huge time count": {
			file(1000, with(ok, func(x *trak) { x.stts = bmff.U32(0xffffffff, 1, 1) })), mp4.ErrMalformed,
			"stts claims",
		},
		"no times": {
			file(1000, with(ok, func(x *trak) { x.stts = bmff.U32(0) })), mp4.ErrMalformed, "decoding times",
		},
		"wrong description": {
			file(1000, with(ok, func(x *trak) { x.stsc = bmff.U32(1, 1, 10, 7) })), mp4.ErrMalformed, "description 7",
		},
		"encrypted": {
			file(1000, with(ok, func(x *trak) { x.entries = [][]byte{bmff.Make("encv", make([]byte, 78))} })),
			mp4.ErrEncrypted, "encrypted",
		},
		"avc1 without avcC": {
			file(1000, with(ok, func(x *trak) { x.entries = [][]byte{bmff.Make("avc1", make([]byte, 78))} })),
			mp4.ErrMalformed, "avcC",
		},
		"video track of sound": {
			file(1000, with(ok, func(x *trak) { x.entries = [][]byte{entry(aacConfig)} })), mp4.ErrMalformed,
			"samples of mp4a",
		},
		"broken avcC": {file(1000, with(ok, func(x *trak) {
			x.entries = [][]byte{bmff.Make("avc1", make([]byte, 78), bmff.Make("avcC", make([]byte, 9)))}
		})), mp4.ErrMalformed, "avcC version"},
		"external media": {
			file(1000, with(ok, func(x *trak) { x.dref = bmff.Full("url ", 0, 0, []byte("http://x/\x00")) })),
			mp4.ErrUnsupported, "another file",
		},
		"same ID":      {file(1000, ok, ok), mp4.ErrMalformed, "two tracks"},
		"no timescale": {file(1000, with(ok, func(x *trak) { x.timescale = 0 })), mp4.ErrMalformed, "media header"},
		"edits": {
			file(1000, with(ok, func(x *trak) { x.edits = bmff.Full("elst", 0, 0, bmff.U32(0xffff, 0)) })),
			mp4.ErrMalformed, "edit list",
		},
		"fragment first": {
			cmaf.AppendFragment(nil, 1, 1, 0, []cmaf.Sample{{Data: []byte{1}}}), mp4.ErrMalformed, "header is missing",
		},
		"time goes back": {
			cmaf.AppendFragment(cmaf.AppendFragment(slices.Clone(frag), 1, 1, 9000, []cmaf.Sample{
				{Data: []byte{1}},
			}), 2, 1, 0, []cmaf.Sample{{Data: []byte{1}}}),
			mp4.ErrMalformed, "backwards",
		},
		"many tracks": {func() []byte {
			var many []trak
			for i := range uint32(70) {
				many = append(many, with(ok, func(x *trak) { x.id = i + 1 }))
			}
			return file(1000, many...)
		}(), mp4.ErrUnsupported, "more than 64 tracks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := index(tt.b)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %+v, %v", f, err)
			}
			if !strings.Contains(err.Error(), tt.say) {
				t.Errorf("%q does not say %q", err, tt.say)
			}
		})
	}
}

func TestIndexAccepts(t *testing.T) {
	t.Parallel()
	ok := video(10, 100)
	for name, tt := range map[string]struct {
		b     []byte
		check func(*mp4.Track) bool
	}{
		"plain": {file(1000, ok), func(t *mp4.Track) bool {
			return t.Len() == 10 && t.Sync(3) && t.DTS(9) == 27000 && t.Duration() == 30000 && t.Size() == 1000 &&
				t.EditEnd() == math.MaxInt64
		}},
		"empty stss": {
			file(1000, with(ok, func(x *trak) { x.stss = bmff.U32(0) })),
			func(t *mp4.Track) bool { return !t.Sync(0) && !t.Sync(9) },
		},
		"two descriptions": {file(1000, with(ok, func(x *trak) {
			x.entries = append(x.entries, x.entries[0])
			x.stsc = bmff.U32(2, 1, 5, 1, 2, 5, 2)
			x.chunks = bmff.U32(2, 800, 900)
		})), func(t *mp4.Track) bool { return t.Changes && t.Config.Codec == "" && t.Len() == 10 }},
		"stss lies": {
			file(1000, with(ok, func(x *trak) { x.stss = bmff.U32(3, 1, 0, 4000) })),
			func(t *mp4.Track) bool { return t.Sync(0) && !t.Sync(1) },
		},
		"negative offsets": {
			file(1000, with(ok, func(x *trak) { x.ctts = bmff.U32(1, 10, 0xfffff448) })),
			func(t *mp4.Track) bool { return t.PTS(0) == -3000 },
		},
		"short ctts": {
			file(1000, with(ok, func(x *trak) { x.ctts = bmff.U32(1, 2, 3000) })),
			func(t *mp4.Track) bool { return t.PTS(1) == 6000 && t.PTS(2) == 6000 },
		},
		"short stts": {
			file(1000, with(ok, func(x *trak) { x.stts = bmff.U32(2, 2, 100, 2, 200) })),
			func(t *mp4.Track) bool { return t.DTS(9) == 200+7*200 },
		},
		"long stts": {
			file(1000, with(ok, func(x *trak) { x.stts = bmff.U32(1, 0xffffffff, 100) })),
			func(t *mp4.Track) bool { return t.Len() == 10 && t.DTS(9) == 900 },
		},
		"negative stts": {
			file(1000, with(ok, func(x *trak) { x.stts = bmff.U32(2, 5, 100, 5, 0xffffffff) })),
			func(t *mp4.Track) bool { return t.DTS(9) == 504 },
		},
		"fixed size": {
			file(1000, with(ok, func(x *trak) { x.stsz = bmff.U32(100, 10) })),
			func(t *mp4.Track) bool { return t.Sample(9).Size == 100 },
		},
		"many per chunk": {
			file(1000, with(ok, func(x *trak) { x.stsc = bmff.U32(1, 1, 0xffffffff, 1) })),
			func(t *mp4.Track) bool { return t.Len() == 10 },
		},
		"stz2": {file(1000, with(ok, func(x *trak) {
			x.stsz, x.more = bmff.U32(1, 0),
				bmff.Full("stz2", 0, 0, bmff.U32(4, 10), []byte{0x12, 0x34, 0x56, 0x78, 0x9a})
		})), func(t *mp4.Track) bool {
			return t.Sample(0).Size == 1 && t.Sample(9).Size == 10 && t.Sample(2).Size == 3
		}},
		"second description": {
			file(1000,
				with(ok, func(x *trak) {
					x.entries = [][]byte{bmff.Make("zzzz"), x.entries[0]}
					x.stsc = bmff.U32(1, 1, 10, 2)
				})),
			func(t *mp4.Track) bool { return t.FourCC == "avc1" },
		},
		"other codec": {
			file(1000, with(ok, func(x *trak) { x.entries = [][]byte{bmff.Make("hvc1", make([]byte, 78))} })),
			func(t *mp4.Track) bool { return t.FourCC == "hvc1" && t.Config.Codec == "" && t.Len() == 10 },
		},
		"other codec, broken": {
			file(1000,
				with(ok, func(x *trak) {
					x.entries = [][]byte{bmff.Make("hvc1", make([]byte, 78))}
					x.offset = 1 << 30
				})),
			func(t *mp4.Track) bool { return t.Len() == 0 },
		},
		"pause and edit": {
			file(1000, with(ok, func(x *trak) {
				x.edits = bmff.Full("elst", 0, 0, bmff.U32(2, 700, 0xffffffff, 1<<16, 200, 3000, 1<<16))
			})),
			func(t *mp4.Track) bool {
				return t.EmptyEdit == 63000 && t.MediaTime == 3000 && t.EditDuration == 18000 && t.PTS(0) == 60000 &&
					t.EditStart() == 63000 && t.EditEnd() == 81000 && !t.NonStandardEdit
			},
		},
		"edits v1": {
			file(1000, with(ok, func(x *trak) {
				x.edits = bmff.Full("elst", 1, 0,
					bmff.U32(2, 0, 700, 0xffffffff, 0xffffffff, 1<<16, 0, 200, 0, 3000, 1<<16))
			})),
			func(t *mp4.Track) bool { return t.EmptyEdit == 63000 && t.MediaTime == 3000 && t.EditDuration == 18000 },
		},
		"two edits": {
			file(1000,
				with(ok, func(x *trak) {
					x.edits = bmff.Full("elst", 0, 0, bmff.U32(2, 100, 0, 1<<16, 100, 9000, 1<<16))
				})),
			func(t *mp4.Track) bool { return t.NonStandardEdit && t.MediaTime == 0 && t.EditEnd() == math.MaxInt64 },
		},
		"half speed": {
			file(1000, with(ok, func(x *trak) { x.edits = bmff.Full("elst", 0, 0, bmff.U32(1, 100, 0, 1<<15)) })),
			func(t *mp4.Track) bool { return t.NonStandardEdit },
		},
		"endless edits": {file(1000, with(ok, func(x *trak) {
			x.edits = bmff.Full("elst", 1, 0,
				bmff.U32(2, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 1<<16, 0xffffffff, 0, 0x7fffffff, 0, 1<<16))
		})), func(t *mp4.Track) bool { return t.EditStart() > 0 && t.EditEnd() > t.EditStart() }},
		"time code beside": {
			file(1000, ok, with(ok, func(x *trak) { x.id, x.handler, x.offset, x.n = 2, "tmcd", 1<<30, 0 })),
			func(t *mp4.Track) bool { return t.Len() == 10 },
		},
		"mdat in front": {func() []byte {
			return append(bmff.Make("mdat", make([]byte, 1000)), file(0, with(ok, func(x *trak) { x.offset = 8 }))...)
		}(), func(t *mp4.Track) bool { return t.Sample(0).Offset == 8 }},
		"long mdat size": {func() []byte {
			mdat := append(binary.BigEndian.AppendUint64([]byte("\x00\x00\x00\x01mdat"), 1016), make([]byte, 1000)...)
			return append(mdat, file(0, with(ok, func(x *trak) { x.offset = 16 }))...)
		}(), func(t *mp4.Track) bool { return t.Len() == 10 }},
		"rubbish in moov": {func() []byte {
			b := file(1000, with(ok, func(x *trak) { x.offset = 100 }))
			moov := binary.BigEndian.Uint32(b[20:])
			binary.BigEndian.PutUint32(b[20:], moov+10)
			return slices.Insert(b, int(20+moov), []byte("\x7f\xff\xff\xfffree\x01\x02")...)
		}(), func(t *mp4.Track) bool { return t.Len() == 10 }},
		"open mdat": {
			func() []byte { b := file(1000, ok); binary.BigEndian.PutUint32(b[len(b)-1008:], 0); return b }(),
			func(t *mp4.Track) bool { return t.Len() == 10 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := index(tt.b)
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Tracks) != 1 || !tt.check(f.Tracks[0]) {
				t.Errorf("got %+v", f.Tracks[0])
			}
		})
	}
}

// TestFragmentedCutAnywhere wants what is whole of a recording that was cut off, and never a sample that is not there.
func TestFragmentedCutAnywhere(t *testing.T) {
	t.Parallel()
	empty := with(video(0, 0), func(x *trak) { x.stts, x.stsc, x.chunks = bmff.U32(0), bmff.U32(0), bmff.U32(0) })
	b := bmff.Make("moov", mvhd(), empty.box(), bmff.Make("mvex", bmff.Full("trex", 0, 0, bmff.U32(1, 1, 0, 0, 0))))
	head := len(b)
	ends := []int{head}
	for i := range 3 {
		b = cmaf.AppendFragment(b, uint32(i+1), 1, uint64(i)*6000, []cmaf.Sample{
			{Duration: 3000, Sync: true, Data: []byte("abcdef")},
			{Duration: 3000, CompositionOffset: int32(i), Data: []byte("gh")},
		})
		ends = append(ends, len(b))
	}
	for n := head; n <= len(b); n++ {
		f, err := index(b[:n])
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		whole := 0
		for _, e := range ends[1:] {
			if e <= n {
				whole++
			}
		}
		tr := f.Tracks[0]
		if tr.Len() != 2*whole || f.Truncated && slices.Contains(ends, n) {
			t.Fatalf("cut at %d: %d samples, want %d; truncated %v", n, tr.Len(), 2*whole, f.Truncated)
		}
	}
	f, err := index(b)
	if err != nil {
		t.Fatal(err)
	}
	tr := f.Tracks[0]
	if got := tr.Sample(3); got.CTS != 1 || got.DTS != 9000 || got.Sync || got.Duration != 3000 || !tr.Sync(4) ||
		tr.Sample(1).CTS != 0 {
		t.Errorf("sample 3 is %+v", got)
	}
	ss, err := mp4.ReadSamples(readerAt(b), tr, 1, 6)
	if err != nil || len(ss) != 5 || string(ss[1].Data) != "abcdef" || string(ss[4].Data) != "gh" {
		t.Errorf("read %+v, %v", ss, err)
	}
}

// counting counts reads and bytes.
type counting struct {
	readerAt
	reads int
	bytes int
}

func (c *counting) ReadAt(p []byte, at int64) (int, error) {
	c.reads++
	c.bytes += len(p)
	return c.readerAt.ReadAt(p, at)
}

func TestReadSamplesCoalesces(t *testing.T) {
	t.Parallel()
	ok := video(40, 1000)
	// Four chunks of ten samples; holes of 0, 500 and 100 000 bytes between them.
	ok.stsc = bmff.U32(1, 1, 10, 1)
	ok.chunks = bmff.U32(4, 5000, 15000, 25500, 135500)
	b := file(150000, ok)
	for i := range b[5000:] {
		b[5000+i] = byte(i / 1000)
	}
	f, err := index(b)
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{readerAt: b}
	ss, err := mp4.ReadSamples(c, f.Tracks[0], 0, 40)
	if err != nil {
		t.Fatal(err)
	}
	if c.reads != 2 || c.bytes != 30500+10000 {
		t.Errorf("%d reads of %d bytes", c.reads, c.bytes)
	}
	for i, s := range ss {
		x := f.Tracks[0].Sample(i)
		if !bytes.Equal(s.Data, b[x.Offset:x.Offset+int64(x.Size)]) || s.Duration != 3000 ||
			cap(s.Data) != len(s.Data) {
			t.Fatalf("sample %d differs", i)
		}
	}
	for _, r := range [][2]int{{-1, 2}, {3, 2}, {0, 41}} {
		if _, err := mp4.ReadSamples(c, f.Tracks[0], r[0], r[1]); err == nil {
			t.Errorf("samples %v were read", r)
		}
	}
	if _, err := mp4.ReadSamples(readerAt(b[:100000]), f.Tracks[0], 0, 40); !errors.Is(err, mp4.ErrTruncated) {
		t.Errorf("file became shorter: %v", err)
	}
	broken := errors.New("disk on fire")
	if _, err := mp4.ReadSamples(failing{broken}, f.Tracks[0], 0, 40); !errors.Is(err, broken) {
		t.Errorf("reader's own error: %v", err)
	}
	if _, err := mp4.Index(failing{broken}, 1000); !errors.Is(err, broken) {
		t.Errorf("reader's own error: %v", err)
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestReadSamplesIsBounded(t *testing.T) {
	t.Parallel()
	h := newHour()
	f, err := mp4.Index(h, h.size)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mp4.ReadSamples(h, f.Tracks[0], 0, f.Tracks[0].Len()); !errors.Is(err, mp4.ErrTooLarge) {
		t.Errorf("the whole hour at once: %v", err)
	}
	if n := f.Bytes(); n > 5<<20 {
		t.Errorf("the index of an hour holds %d bytes", n)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(file(200, video(4, 50)))
	f.Add(file(200,
		with(video(4, 50), func(x *trak) {
			x.ctts, x.stss, x.stts = bmff.U32(1, 4, 10), bmff.U32(1, 1), bmff.U32(2, 2, 1, 2, 3)
		})))
	f.Add(file(200, video(2, 50), trak{
		id: 2, timescale: 48000, handler: "soun", entries: [][]byte{entry(aacConfig)}, n: 2, size: 50,
		edits: bmff.Full("elst", 0, 0, bmff.U32(1, 9, 1024, 1<<16)),
	}))
	empty := with(video(0, 0), func(x *trak) { x.stts, x.stsc, x.chunks = bmff.U32(0), bmff.U32(0), bmff.U32(0) })
	frag := bmff.Make("moov", mvhd(), empty.box(), bmff.Make("mvex", bmff.Full("trex", 0, 0, bmff.U32(1, 1, 9, 9, 0))))
	f.Add(cmaf.AppendFragment(frag, 1, 1, 0, []cmaf.Sample{
		{Duration: 1, Sync: true, Data: []byte("\x00\x00\x00\x02\x65\x88")},
		{Duration: 2, CompositionOffset: -1, Data: []byte("x")},
	}))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := index(b)
		if err != nil {
			return
		}
		if limit := int64(64*len(b) + 1<<16); x.Bytes() > limit {
			t.Fatalf("an index of %d bytes out of %d", x.Bytes(), len(b))
		}
		for _, tr := range x.Tracks {
			for i := range tr.Len() {
				s := tr.Sample(i)
				if s.Offset < 0 || s.Offset+int64(s.Size) > int64(len(b)) {
					t.Fatalf("sample %d is %+v in %d bytes", i, s, len(b))
				}
				_ = tr.PTS(i)
			}
			if _, err := mp4.ReadSamples(readerAt(b), tr, 0, min(tr.Len(), 16)); err != nil {
				t.Fatal(err)
			}
			if tr.Config.Codec != "" {
				if _, err := cmaf.NewReader(bytes.NewReader(mp4.InitSegment(tr)),
					cmaf.ReaderOptions{}).Tracks(); err != nil {
					t.Fatalf("init segment: %v", err)
				}
				_, _ = mp4.IDRs(readerAt(b), tr)
			}
		}
	})
}

func BenchmarkIndexHour(b *testing.B) {
	h := newHour()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := mp4.Index(h, h.size); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSegment(b *testing.B) {
	h := newHour()
	f, err := mp4.Index(h, h.size)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		ss, err := mp4.ReadSamples(h, f.Tracks[0], 1200, 1320)
		if err != nil {
			b.Fatal(err)
		}
		cmaf.AppendFragment(nil, 1, 1, 0, ss)
	}
}
