package hevc_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"millrace/internal/media/codec/codectest"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/nal"
)

// Parameter sets written by x265.
const (
	vps = "40010c01ffff01600000030090000003000003003c959409"
	// 322x180, 25 fps.
	sps = "42010101600000030090000003000003003ca00a880c1c44f965654a4c2f016808000003000800000300c840"
	// Main 10, 1920x1080, 29.97 fps.
	spsMain = "420101022000000300900000030000030078a003c0801107cad965654a4c2f016a1220120800001f480003a98040"
	pps     = "4401c073c189"
)

func TestInfo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sps           string
		width, height int
		fps           float64
		depth         int
		codec         string
	}{
		"main":    {sps, 322, 180, 25, 8, "hvc1.1.6.L60.90"},
		"main 10": {spsMain, 1920, 1080, 30000.0 / 1001, 10, "hvc1.2.4.L120.90"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, err := hevc.Info(codectest.Unhex(t, tt.sps))
			if err != nil || i.Width != tt.width || i.Height != tt.height || i.FrameRate != tt.fps ||
				i.BitDepth != tt.depth || i.BitDepthChroma != tt.depth || i.ChromaFormat != 1 {
				t.Errorf("%+v, %v", i, err)
			}
			if c := hevc.CodecString(codectest.Unhex(t, tt.sps)); c != tt.codec {
				t.Errorf("codec %q", c)
			}
		})
	}
}

func TestInfoRefuses(t *testing.T) {
	t.Parallel()
	whole := codectest.Unhex(t, sps)
	for name, b := range map[string][]byte{
		"empty": nil, "a PPS": codectest.Unhex(t, pps), "cut": whole[:22],
		"zeros": append([]byte{0x42, 1}, make([]byte, 40)...), "long": append(whole, make([]byte, 5000)...),
	} {
		if i, err := hevc.Info(b); !errors.Is(err, hevc.ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
		if hevc.CodecString(b) != "" {
			t.Errorf("%s has a name", name)
		}
	}
}

func TestHVCCRoundTrip(t *testing.T) {
	t.Parallel()
	b, err := hevc.AppendHVCC(nil, codectest.Unhex(t, vps), codectest.Unhex(t, sps), codectest.Unhex(t, pps),
		codectest.Unhex(t, pps+"01"))
	if err != nil {
		t.Fatal(err)
	}
	// as x265 and ffmpeg write it
	if head := hex.EncodeToString(b[:23]); head != "0101600000009000000000003cf000fcfdf8f800000f03" {
		t.Errorf("head %s", head)
	}
	v, s, p, size, err := hevc.ParseHVCC(b)
	if err != nil || size != 4 || len(v) != 1 || len(s) != 1 || len(p) != 2 ||
		hex.EncodeToString(v[0])+hex.EncodeToString(s[0])+hex.EncodeToString(p[0]) != vps+sps+pps {
		t.Errorf("%x %x %x %d %v", v, s, p, size, err)
	}
	for n := range b {
		if _, _, _, _, err := hevc.ParseHVCC(b[:n]); !errors.Is(err, hevc.ErrMalformed) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	if _, err := hevc.AppendHVCC(nil, nil, codectest.Unhex(t, sps), codectest.Unhex(t, pps)); !errors.Is(err,
		hevc.ErrMalformed) {
		t.Error(err)
	}
}

func TestTrackConfig(t *testing.T) {
	t.Parallel()
	c, err := hevc.TrackConfig(codectest.Unhex(t, vps), codectest.Unhex(t, spsMain), codectest.Unhex(t, pps))
	if err != nil || c.Width != 1920 || c.Height != 1080 || c.FrameRate < 29.9 {
		t.Errorf("%+v %v", c, err)
	}
	if _, err := hevc.TrackConfig(codectest.Unhex(t, pps), codectest.Unhex(t, sps),
		codectest.Unhex(t, pps)); !errors.Is(err, hevc.ErrMalformed) {
		t.Error(err)
	}
}

func TestIsKey(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		types []byte
		want  bool
	}{
		"IDR":      {[]byte{35, 32, 33, 34, 39, 19}, true},
		"CRA":      {[]byte{21}, true},
		"BLA":      {[]byte{39, 16}, true},
		"trailing": {[]byte{35, 1, 19}, false},
		"reserved": {[]byte{22}, false},
		"no slice": {[]byte{32, 33, 34}, false},
		"nothing":  {nil, false},
	} {
		var au []byte
		for _, typ := range tt.types {
			au = nal.Append(au, []byte{typ << 1, 1, 0xaa})
		}
		if hevc.IsKey(au) != tt.want || hevc.IsCRA(au) != (name == "CRA") {
			t.Error(name)
		}
	}
}

func FuzzInfo(f *testing.F) {
	f.Add(codectest.Unhex(f, sps))
	f.Add(codectest.Unhex(f, spsMain))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := hevc.Info(b)
		if err != nil {
			return
		}
		if i.Width <= 0 || i.Height <= 0 || i.Width > 16384 || i.Height > 16384 || i.FrameRate < 0 ||
			i.FrameRate > 1000 || i.PARWidth <= 0 || i.PARHeight <= 0 ||
			!strings.HasPrefix(hevc.CodecString(b), "hvc1.") {
			t.Fatalf("%+v", i)
		}
	})
}

func FuzzParseHVCC(f *testing.F) {
	b, err := hevc.AppendHVCC(nil, codectest.Unhex(f, vps), codectest.Unhex(f, sps), codectest.Unhex(f, pps))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		v, s, p, size, err := hevc.ParseHVCC(b)
		if err == nil && (size < 1 || size > 4 || len(v)+len(s)+len(p) > len(b)) {
			t.Fatalf("%d %d %d %d", len(v), len(s), len(p), size)
		}
		hevc.IsKey(b)
	})
}

func TestSublayer(t *testing.T) {
	t.Parallel()
	unit := func(kind, layer byte) []byte { return []byte{kind << 1, layer + 1, 0x80} }
	sei := unit(hevc.TypeSEI, 0)
	for name, tt := range map[string]struct {
		units      [][]byte
		layer      int
		unreferred bool
	}{
		"TRAIL_R":                {[][]byte{sei, unit(1, 0)}, 0, false},
		"TRAIL_N":                {[][]byte{unit(0, 0)}, 0, true},
		"TSA_N in two slices":    {[][]byte{unit(2, 2), unit(2, 2), sei}, 2, true},
		"RASL_N":                 {[][]byte{unit(8, 0)}, 0, true},
		"IDR":                    {[][]byte{unit(hevc.TypeIDRWRADL, 0)}, 0, false},
		"IDR, even":              {[][]byte{unit(hevc.TypeIDRNLP, 0)}, 0, false},
		"slices that differ":     {[][]byte{unit(0, 0), unit(1, 0)}, 0, false},
		"layers that differ":     {[][]byte{unit(0, 0), unit(0, 1)}, -1, false},
		"a layer of another eye": {[][]byte{unit(0, 0), {0, 1<<3 | 1, 0x80}}, -1, false},
		"no slice":               {[][]byte{sei}, -1, false},
		"temporal ID 0":          {[][]byte{{0, 0, 0x80}}, -1, false},
		"too short":              {[][]byte{{0}}, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layer, unreferred := hevc.Sublayer(nal.Append(nil, tt.units...), 4)
			if layer != tt.layer || unreferred != tt.unreferred {
				t.Errorf("%d, %t, want %d, %t", layer, unreferred, tt.layer, tt.unreferred)
			}
		})
	}
	if layer, _ := hevc.Sublayer([]byte{0, 0, 0, 9, 0, 1}, 4); layer != -1 {
		t.Errorf("of what is cut off: %d", layer)
	}
}
