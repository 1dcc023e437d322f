package cmaf_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

func samples(n int) []cmaf.Sample {
	out := make([]cmaf.Sample, n)
	for i := range out {
		out[i] = cmaf.Sample{
			Duration: 3000, CompositionOffset: int32(i%3) * 3000, Sync: i == 0,
			Data: bytes.Repeat([]byte{byte(i)}, 100+i),
		}
	}
	return out
}

func TestFragmentRoundTrip(t *testing.T) {
	t.Parallel()
	vary := func(change func(i int, s *cmaf.Sample)) []cmaf.Sample {
		ss := samples(7)
		for i := range ss {
			change(i, &ss[i])
		}
		return ss
	}
	for name, ss := range map[string][]cmaf.Sample{
		"B-frames":           samples(7),
		"one":                samples(1),
		"none":               {},
		"audio":              vary(func(_ int, s *cmaf.Sample) { s.CompositionOffset, s.Sync = 0, true }),
		"variable durations": vary(func(i int, s *cmaf.Sample) { s.Duration = uint32(i) * 100 }),
		"negative offsets":   vary(func(i int, s *cmaf.Sample) { s.CompositionOffset = int32(-i) }),
		"no sync":            vary(func(_ int, s *cmaf.Sample) { s.Sync = false }),
		"empty sample":       vary(func(_ int, s *cmaf.Sample) { s.Data = s.Data[:0] }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := bmff.Make("styp", []byte("msdh\x00\x00\x00\x00"))
			b := cmaf.AppendFragment(slices.Clone(prefix), 9, 3, 1<<40, ss)
			got, err := cmaf.ParseFragments(b)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 || got[0].TrackID != 3 || got[0].BaseMediaDecodeTime != 1<<40 ||
				got[0].Offset != len(prefix) || cmaf.Whole(got) != len(b) {
				t.Fatalf("got %+v of %d bytes", got, len(b))
			}
			var sum uint64
			for i := range ss {
				sum += uint64(ss[i].Duration)
				g, w := got[0].Samples[i], ss[i]
				if g.Duration != w.Duration || g.CompositionOffset != w.CompositionOffset || g.Sync != w.Sync ||
					!bytes.Equal(g.Data, w.Data) {
					t.Errorf("sample %d: got %+v, want %+v", i, g, w)
				}
			}
			if got[0].Duration != sum || len(got[0].Samples) != len(ss) {
				t.Errorf("duration %d of %d samples, want %d of %d", got[0].Duration, len(got[0].Samples), sum, len(ss))
			}
		})
	}
}

func TestAppendFragmentAllocatesNothing(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the whole process
	ss := samples(10)
	buf := make([]byte, 0, 1<<16)
	if n := testing.AllocsPerRun(100, func() { buf = cmaf.AppendFragment(buf[:0], 1, 1, 0, ss) }); n != 0 {
		t.Errorf("%v allocations into a buffer that is large enough", n)
	}
	if n := testing.AllocsPerRun(100, func() { cmaf.AppendFragment(nil, 1, 1, 0, ss) }); n != 1 {
		t.Errorf("%v allocations into no buffer, want 1", n)
	}
}

func TestParseFragmentsAtEveryCut(t *testing.T) {
	t.Parallel()
	var b []byte
	var ends []int
	for i := range 3 {
		b = cmaf.AppendFragment(b, uint32(i+1), 1, uint64(i)*9000, samples(3))
		ends = append(ends, len(b))
	}
	for n := range len(b) + 1 {
		got, err := cmaf.ParseFragments(b[:n])
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		want := 0
		for _, e := range ends {
			if e <= n {
				want = e
			}
		}
		if cmaf.Whole(got) != want {
			t.Fatalf("cut at %d: whole up to %d, want %d", n, cmaf.Whole(got), want)
		}
	}
	got, err := cmaf.ParseFragments(append(slices.Clone(b), make([]byte, 4096)...))
	if !errors.Is(err, bmff.ErrMalformed) || len(got) != 3 {
		t.Errorf("a tail of zeros: %d fragments, %v", len(got), err)
	}
}

// TestReadAndWriteAgain reads what ffmpeg writes on a pipe, writes every track again and has ffmpeg decode both:
// frames, times and bytes must not differ.
func TestReadAndWriteAgain(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]string{
		"by key frame": "+frag_keyframe+empty_moov+default_base_moof+skip_trailer",
		"by frame":     "+frag_every_frame+empty_moov+default_base_moof",
		"old base":     "+frag_keyframe+empty_moov",
		"cmaf":         "+cmaf+frag_keyframe+empty_moov+negative_cts_offsets",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fragmented(t, flags)
			r := cmaf.NewReader(iotest.OneByteReader(bytes.NewReader(in)), cmaf.ReaderOptions{})
			tracks, err := r.Tracks()
			if err != nil || len(tracks) != 2 {
				t.Fatalf("%d tracks, %v", len(tracks), err)
			}
			v, a := tracks[0], tracks[1]
			if v.Config.Codec != frame.H264 || v.Config.Width != 320 || v.Config.Height != 180 || v.FourCC != "avc1" ||
				v.LengthSize != 4 || v.Timescale == 0 {
				t.Errorf("video: %+v", v)
			}
			if a.Config.Codec != frame.AAC || a.Config.SampleRate != 44100 || a.Config.Channels != 2 ||
				a.FourCC != "mp4a" || a.Timescale != 44100 {
				t.Errorf("audio: %+v", a)
			}
			if got := h264.CodecString(v.Config.SPS) + " " +
				aac.CodecString(a.Config.ASC); !strings.HasPrefix(got, "avc1.") ||
				!strings.HasSuffix(got, " mp4a.40.2") {
				t.Errorf("codecs %q", got)
			}
			out := map[uint32][]byte{}
			for _, tr := range tracks {
				if out[tr.ID], err = cmaf.Init(tr.Config, tr.Timescale); err != nil {
					t.Fatal(err)
				}
			}
			seq := uint32(0)
			for {
				fs, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range fs {
					seq++
					out[f.TrackID] = cmaf.AppendFragment(out[f.TrackID], seq, cmaf.TrackID, f.BaseMediaDecodeTime,
						f.Samples)
				}
			}
			if flags == "+cmaf+frag_keyframe+empty_moov+negative_cts_offsets" {
				return // its edit list moves the times; that the bytes are right the others show
			}
			for i, tr := range tracks {
				want, got := frames(t, in, fmt.Sprintf("0:%d", i)), frames(t, out[tr.ID], "0:0")
				for j := range want { // the stream's number in the file differs
					want[j] = "0" + want[j][1:]
				}
				if len(want) == 0 || !reflect.DeepEqual(got, want) {
					t.Errorf("track %d: %d frames, want %d; first %q, want %q", tr.ID, len(got), len(want), first(got),
						first(want))
				}
			}
		})
	}
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

func TestInitCarriesColourAndShape(t *testing.T) {
	t.Parallel()
	in := fragmented(t, "+frag_keyframe+empty_moov+default_base_moof", "-vf", "setsar=4/3", "-colorspace", "bt709",
		"-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv")
	tracks, err := cmaf.NewReader(bytes.NewReader(in), cmaf.ReaderOptions{}).Tracks()
	if err != nil {
		t.Fatal(err)
	}
	b, err := cmaf.Init(tracks[0].Config, 90000)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pasp\x00\x00\x00\x04\x00\x00\x00\x03", "colrnclx\x00\x01\x00\x01\x00\x01\x00"} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("no %q in the init segment", want)
		}
	}
	again, err := cmaf.NewReader(bytes.NewReader(b), cmaf.ReaderOptions{}).Tracks()
	if err != nil || !reflect.DeepEqual(again[0].Config, tracks[0].Config) {
		t.Errorf("read back %+v, want %+v (%v)", again, tracks[0].Config, err)
	}
}

// TestVideoRange: an init segment says how light is coded, in the words of each codec's sample entry.
func TestVideoRange(t *testing.T) {
	t.Parallel()
	hevc := func(sps string) frame.Config {
		return frame.Config{
			Kind: frame.Video, Codec: frame.HEVC, Width: 320, Height: 180,
			VPS: []byte("\x40\x01\x0c\x01"), SPS: []byte(sps), PPS: []byte("\x44\x01\xc0"),
		}
	}
	const front = "\x42\x01\x01\x02\x20\x00\x00\x03\x00\x90\x00\x00\x03\x00\x00\x03\x00\x3c\xa0\x0a\x08\x0c\x1f" +
		"\x3b\x65\x95\x95\x29\x30\xbc\x05\xa8\x48"
	const back = "\x48\x20\x00\x00\x03\x00\x20\x00\x00\x03\x03\x21"
	vp9 := frame.Config{
		Kind: frame.Video, Codec: frame.VP9, Width: 320, Height: 180, Header: []byte{2, 31, 0xa0, 9, 18, 9, 0, 0},
	}
	for name, tt := range map[string]struct {
		config frame.Config
		want   frame.VideoRange
	}{
		"HEVC, PQ": {hevc(front + "\x80" + back), frame.PQ}, "HEVC, HLG": {hevc(front + "\x90" + back), frame.HLG},
		"VP9, HLG": {vp9, frame.HLG},
	} {
		b, err := cmaf.Init(tt.config, 90000)
		if err != nil {
			t.Fatal(name, err)
		}
		tracks, err := cmaf.NewReader(bytes.NewReader(b), cmaf.ReaderOptions{}).Tracks()
		if err != nil || len(tracks) != 1 || tracks[0].VideoRange() != tt.want {
			t.Errorf("%s: %d tracks, %v", name, len(tracks), err)
		}
	}
	var none cmaf.Track
	if none.VideoRange() != frame.SDR {
		t.Error("a track without a sample entry has a range")
	}
}

func TestInitRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]frame.Config{
		"text":   {Kind: frame.Text},
		"codec":  {Kind: frame.Video, Codec: "hevc"},
		"no SPS": {Kind: frame.Video, Codec: frame.H264},
		"no ASC": {Kind: frame.Audio, Codec: frame.AAC},
	} {
		if b, err := cmaf.Init(c, 90000); err == nil {
			t.Errorf("%s: made %d bytes", name, len(b))
		}
	}
}

func TestReaderEnds(t *testing.T) {
	t.Parallel()
	in := fragmented(t, "+frag_keyframe+empty_moov+default_base_moof+skip_trailer")
	count := func(b []byte) (int, error) {
		r := cmaf.NewReader(bytes.NewReader(b), cmaf.ReaderOptions{})
		for n := 0; ; n++ {
			if _, err := r.Next(); err != nil {
				_, again := r.Next()
				if !errors.Is(again, err) {
					t.Errorf("after %v came %v", err, again)
				}
				return n, err
			}
		}
	}
	whole, err := count(in)
	if whole == 0 || !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("%d fragments, %v", whole, err)
	}
	if n, err := count(in[:len(in)-1]); n != whole-1 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %d fragments of %d, %v", n, whole, err)
	}
	if _, err := count(nil); !errors.Is(err, io.EOF) {
		t.Errorf("nothing: %v", err)
	}
	if _, err := count([]byte("<html><body>not a video</body></html>")); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("HTML: %v", err)
	}
	big := bmff.Make("moov", make([]byte, 100))
	if _, err := cmaf.NewReader(bytes.NewReader(big), cmaf.ReaderOptions{MaxHeader: 64}).Tracks(); !errors.Is(err,
		bmff.ErrMalformed) {
		t.Errorf("a moov over the limit: %v", err)
	}
}

func FuzzParseFragments(f *testing.F) {
	f.Add(cmaf.AppendFragment(nil, 1, 1, 0, samples(3)))
	f.Add(cmaf.AppendFragment(bmff.Make("styp"), 1, 1, 1<<50, samples(1)))
	f.Add([]byte("\x00\x00\x00\x01moof\x00\x00\x00\x00\x00\x00\x00\x10"))
	f.Fuzz(func(t *testing.T, b []byte) {
		fs, _ := cmaf.ParseFragments(b)
		n := 0
		for _, x := range fs {
			n += len(x.Samples)
			if x.Offset < 0 || x.Offset+x.Size > len(b) {
				t.Fatalf("fragment at %d of %d bytes in %d", x.Offset, x.Size, len(b))
			}
		}
		if n > len(b) {
			t.Fatalf("%d samples out of %d bytes", n, len(b))
		}
		if whole := cmaf.Whole(fs); whole > 0 { // what is whole stays whole by itself
			again, err := cmaf.ParseFragments(b[:whole])
			if err != nil || len(again) != len(fs) {
				t.Fatalf("%d fragments, again %d, %v", len(fs), len(again), err)
			}
		}
	})
}

func FuzzReader(f *testing.F) {
	sps := []byte{
		0x67, 0x42, 0xc0, 0x1f, 0xd9, 0x00, 0x78, 0x02, 0x27, 0xe5, 0x84, 0x00, 0x00, 0x03, 0x00, 0x04, 0x00, 0x00,
		0x03, 0x00, 0xf0, 0x3c, 0x60, 0xc9, 0x20,
	}
	v, err := cmaf.Init(frame.Config{Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: []byte{0x68, 1, 2, 3}}, 90000)
	if err != nil {
		f.Fatal(err)
	}
	a, err := cmaf.Init(frame.Config{Kind: frame.Audio, Codec: frame.AAC, ASC: []byte{0x12, 0x10}}, 44100)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(cmaf.AppendFragment(v, 1, 1, 0, samples(3)))
	f.Add(cmaf.AppendFragment(a, 1, 1, 0, samples(3)))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := cmaf.NewReader(bytes.NewReader(b), cmaf.ReaderOptions{})
		n := 0
		for {
			fs, err := r.Next()
			if err != nil {
				break
			}
			for _, x := range fs {
				n += len(x.Samples)
			}
		}
		if n > len(b) {
			t.Fatalf("%d samples out of %d bytes", n, len(b))
		}
	})
}

func BenchmarkAppendFragment(b *testing.B) {
	ss := samples(6)
	for i := range ss {
		ss[i].Data = make([]byte, 44000/6)
	}
	buf := make([]byte, 0, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		buf = cmaf.AppendFragment(buf[:0], 1, 1, 0, ss)
	}
}
