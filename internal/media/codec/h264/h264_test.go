package h264_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"millrace/internal/media/codec/codectest"
	"millrace/internal/media/codec/h264"
)

// Parameter sets written by x264 and by hardware encoders.
const (
	spsHigh1080  = "67640028acd940780227e5c044000003000400000300f03c60c658" // x264, 1920x1080, cropped from 1088
	spsBaseline  = "6742c01fd900780227e584000003000400000300f03c60c920"
	sps720       = "6764001facd9405005bb011000000300100000030320f1831960"
	sps352x288   = "67640028ad84010c2000000000000000000000000000000000" // cut on purpose
	pps          = "68ebe3cb22c0"
	noReordering = "6742c028d900780227e584000003000400000300f03c60c920"
)

func TestInfo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sps           string
		width, height int
		fps           float64
		codec         string
	}{
		"high 1080p30":     {spsHigh1080, 1920, 1080, 30, "avc1.640028"},
		"baseline 1080p30": {spsBaseline, 1920, 1080, 30, "avc1.42c01f"},
		"high 720p25":      {sps720, 1280, 720, 25, "avc1.64001f"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := h264.Info(codectest.Unhex(t, tt.sps))
			if err != nil {
				t.Fatal(err)
			}
			if got.Width != tt.width || got.Height != tt.height || got.FrameRate != tt.fps || got.Interlaced ||
				got.BitDepth != 8 || got.ChromaFormat != 1 ||
				got.PARWidth != got.PARHeight {
				t.Errorf("got %+v", got)
			}
			if c := h264.CodecString(codectest.Unhex(t, tt.sps)); c != tt.codec {
				t.Errorf("codec %q, want %q", c, tt.codec)
			}
		})
	}
	for name, tt := range map[string]struct {
		sps  string
		want h264.SPSInfo
	}{
		"interlaced": {
			"67640015acd941410fcb808800000300080000030190f8a14cb0",
			h264.SPSInfo{
				Width: 320, Height: 240, FrameRate: 25, LevelIDC: 21, ProfileIDC: 100, ChromaFormat: 1, BitDepth: 8,
				Interlaced: true, PARWidth: 1, PARHeight: 1,
			},
		},
		"10 bit 422": {
			"677a000db6cd94141fb011000003000100000300320f14299601",
			h264.SPSInfo{
				Width: 320, Height: 240, FrameRate: 25, LevelIDC: 13, ProfileIDC: 122, ChromaFormat: 2, BitDepth: 10,
				PARWidth: 1, PARHeight: 1,
			},
		},
		"444 odd": {
			"67f4000d919b282a33c7c67fe02d403c62000003000200000300641e28532c01",
			h264.SPSInfo{
				Width: 322, Height: 181, FrameRate: 25, LevelIDC: 13, ProfileIDC: 244, ChromaFormat: 3, BitDepth: 8,
				PARWidth: 362, PARHeight: 483,
			},
		},
		"PAR, crop": {
			"6764000dacd941519e226c0c40000003004000000c83c50a6580",
			h264.SPSInfo{
				Width: 322, Height: 182, FrameRate: 25, LevelIDC: 13, ProfileIDC: 100, ChromaFormat: 1, BitDepth: 8,
				PARWidth: 10, PARHeight: 11,
			},
		},
		"HRD": {
			"6764000dacd94141fb01100000030010000003032e02001e840007a12930c01e28532c01",
			h264.SPSInfo{
				Width: 320, Height: 240, FrameRate: 25, LevelIDC: 13, ProfileIDC: 100, ChromaFormat: 1, BitDepth: 8,
				PARWidth: 1, PARHeight: 1,
			},
		},
		"scaling": {
			"6764000dacd94141fb011000000300100000030320f1429960",
			h264.SPSInfo{
				Width: 320, Height: 240, FrameRate: 25, LevelIDC: 13, ProfileIDC: 100, ChromaFormat: 1, BitDepth: 8,
				PARWidth: 1, PARHeight: 1,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := h264.Info(codectest.Unhex(t, tt.sps))
			if err != nil || got.ReorderFrames != 2 {
				t.Errorf("reorders %d, %v", got.ReorderFrames, err)
			}
			got.ReorderFrames, got.Colour, got.Constraints, got.BitDepthChroma = 0, h264.Colour{}, 0, 0
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	base, err := h264.Info(codectest.Unhex(t, spsBaseline))
	if err != nil || base.ReorderFrames != 0 {
		t.Errorf("baseline reorders %d, %v", base.ReorderFrames, err)
	}
}

func TestInfoRefuses(t *testing.T) {
	t.Parallel()
	for name, sps := range map[string][]byte{
		"empty": nil, "short": {0x67, 1}, "a PPS": codectest.Unhex(t, pps),
		"long": append([]byte{0x67}, make([]byte, 5000)...),
		"cut":  codectest.Unhex(t, spsHigh1080)[:8], "zeros": append([]byte{0x67}, make([]byte, 40)...),
		"ones": append([]byte{0x67}, bytes.Repeat([]byte{0xff}, 40)...),
	} {
		if info, err := h264.Info(sps); !errors.Is(err, h264.ErrMalformed) && name != "ones" {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
}

func TestAVCCOfSeveralSets(t *testing.T) {
	t.Parallel()
	second, third := codectest.Unhex(t, sps720), append(codectest.Unhex(t, pps), 1)
	c, err := h264.TrackConfig(codectest.Unhex(t, spsHigh1080), codectest.Unhex(t, pps), third, second)
	if err != nil || c.Height != 1080 {
		t.Fatalf("%+v, %v", c, err)
	}
	b, err := h264.AppendAVCC(nil, c.SPS, c.PPS, c.Sets...)
	if err != nil {
		t.Fatal(err)
	}
	s, p, _, err := h264.ParseAVCC(b)
	if err != nil || len(s) != 2 || len(p) != 2 || hex.EncodeToString(s[0]) != spsHigh1080 ||
		!bytes.Equal(s[1], second) || !bytes.Equal(p[1], third) || b[1] != 0x64 || b[3] != 0x28 {
		t.Errorf("%x %x, %v", s, p, err)
	}
	if _, err := h264.TrackConfig(c.SPS, c.PPS, []byte{0x65, 1}); !errors.Is(err, h264.ErrMalformed) {
		t.Error(err)
	}
	many := make([][]byte, 31)
	for i := range many {
		many[i] = second
	}
	if _, err := h264.AppendAVCC(nil, c.SPS, c.PPS, many...); !errors.Is(err, h264.ErrMalformed) {
		t.Error("32 SPS have no place in avcC")
	}
}

func TestAVCCRoundTrip(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]string{"high": spsHigh1080, "baseline": spsBaseline} {
		b, err := h264.AppendAVCC(nil, codectest.Unhex(t, s), codectest.Unhex(t, pps))
		if err != nil {
			t.Fatal(err)
		}
		sps, p, size, err := h264.ParseAVCC(b)
		if err != nil || size != 4 || len(sps) != 1 || len(p) != 1 || hex.EncodeToString(sps[0]) != s ||
			hex.EncodeToString(p[0]) != pps {
			t.Errorf("%s: %x %x %d %v", name, sps, p, size, err)
		}
		for n := range b[:len(b)-4] { // the High extension may be missing
			if n < 8+len(sps[0])+3+len(p[0]) {
				if _, _, _, err := h264.ParseAVCC(b[:n]); !errors.Is(err, h264.ErrMalformed) {
					t.Fatalf("%s cut at %d: %v", name, n, err)
				}
			}
		}
	}
}

// au builds an access unit with 4-byte lengths.
func au(nals ...string) []byte {
	var b []byte
	for _, n := range nals {
		b = append(b, 0, 0, 0, byte(len(n)))
		b = append(b, n...)
	}
	return b
}

const (
	aud, sps, ppsNAL, sei, idr, slice, filler = "\x09\x10", "\x67sps", "\x68pps", "\x06sei", "\x65idr", "\x41slice",
		"\x0c\xff\xff"
)

func TestKeyFrames(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		au  []byte
		idr bool
	}{
		"idr":             {au(idr), true},
		"with all before": {au(aud, sps, ppsNAL, sei, idr, idr), true},
		"slice":           {au(aud, slice), false},
		"recovery point":  {au(sei, slice), false},
		"sets only":       {au(sps, ppsNAL), false},
		"empty":           {nil, false},
		"lies":            {[]byte{0xff, 0xff, 0xff, 0xff, 0x65}, false},
		"empty unit":      {au("", idr), true},
	} {
		if got := h264.HasIDR(tt.au); got != tt.idr {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestIsIDRPrefix(t *testing.T) {
	t.Parallel()
	whole := au(aud, sei, idr, slice)
	for n := range len(whole) {
		got, known, at := h264.IsIDRPrefix(whole[:n], 4)
		slicePos := int64(len(au(aud, sei)))
		if wantKnown := int64(n) > slicePos+4; known != wantKnown || got != wantKnown {
			t.Errorf("%d bytes: idr %v, known %v", n, got, known)
		}
		if !known && (at > slicePos || n >= 5 && at == 0) {
			t.Errorf("%d bytes: read on from %d", n, at)
		}
	}
	if got, known, _ := h264.IsIDRPrefix([]byte{2, 0x06, 1, 1, 0x65}, 1); !got || !known {
		t.Error("lengths of one byte")
	}
	if got, known, _ := h264.IsIDRPrefix([]byte{0, 2, 0x41, 1}, 2); got || !known {
		t.Error("lengths of two bytes")
	}
	if _, known, at := h264.IsIDRPrefix([]byte{0xff, 0xff, 0xff, 0xff, 0x06}, 4); known || at != 4+0xffffffff {
		t.Errorf("a length that lies: %v %d", known, at)
	}
}

func TestNALsAllocateNothing(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the whole process
	unit := au(aud, sps, ppsNAL, sei, idr)
	var types []int
	for nal := range h264.NALs(unit, 4) {
		types = append(types, h264.Type(nal))
	}
	if !slices.Equal(types, []int{9, 7, 8, 6, 5}) {
		t.Errorf("types %v", types)
	}
	n := 0
	if a := testing.AllocsPerRun(100, func() {
		for nal := range h264.NALs(unit, 4) {
			n += len(nal)
		}
	}); a != 0 {
		t.Errorf("%v allocations", a)
	}
	if h264.Check(unit) != nil || h264.Check(unit[:len(unit)-1]) == nil || h264.Check(nil) == nil ||
		h264.Check(append(unit, 0)) == nil {
		t.Error("Check")
	}
}

func FuzzInfo(f *testing.F) {
	for _, s := range []string{spsHigh1080, spsBaseline, sps720, sps352x288, noReordering} {
		f.Add(codectest.Unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		info, err := h264.Info(b)
		if err != nil {
			return
		}
		if info.Width <= 0 || info.Height <= 0 || info.Width > 16384 || info.Height > 16384 || info.PARWidth <= 0 ||
			info.PARHeight <= 0 ||
			info.FrameRate < 0 || info.FrameRate > 1000 || h264.CodecString(b) == "" {
			t.Fatalf("%+v", info)
		}
	})
}

func FuzzAccessUnit(f *testing.F) {
	f.Add(au(aud, sps, ppsNAL, sei, idr, filler))
	f.Fuzz(func(t *testing.T, b []byte) {
		idr, known, _ := h264.IsIDRPrefix(b, 4)
		if known && h264.Check(b) == nil && idr != h264.HasIDR(b) {
			t.Fatal("IsIDRPrefix and HasIDR differ")
		}
	})
}

func FuzzParseAVCC(f *testing.F) {
	f.Add([]byte{1, 0x64, 0, 0x1f, 0xff, 0xe1, 0, 1, 0x67, 1, 0, 1, 0x68})
	f.Fuzz(func(t *testing.T, b []byte) {
		sps, p, size, err := h264.ParseAVCC(b)
		if err == nil && (size < 1 || size > 4 || len(sps) > 31 || len(p) > 255) {
			t.Fatalf("%d %d %d", len(sps), len(p), size)
		}
	})
}
