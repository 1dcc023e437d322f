package av1_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/codectest"
)

// Sequence headers written by SVT-AV1, 322x180 and 10 bit PQ 320x180.
const (
	header   = "0a0b000000043d06cc02f80040"
	header10 = "0a0e000000043cfecc02f85091009040"
)

// OBUs made by hand.
var (
	delimiter = []byte{0x12, 0}
	padding   = []byte{0x7a, 2, 1, 0x80}
	key       = []byte{0x32, 3, 0x10, 0xaa, 0xbb} // OBU_FRAME, key, shown
	hidden    = []byte{0x32, 3, 0x00, 0xaa, 0xbb} // key, not shown
	inter     = []byte{0x32, 3, 0x30, 0xaa, 0xbb}
	unsized   = []byte{0x30, 0x10, 0xaa, 0xbb}
)

func TestInfo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		header        string
		width, height int
		codec, av1C   string
	}{
		"8 bit":  {header, 322, 180, "av01.0.00M.08", "81000c00"},
		"10 bit": {header10, 320, 180, "av01.0.00M.10.0.110.09.16.09.0", "81004c00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := av1.TrackConfig(codectest.Unhex(t, tt.header))
			if err != nil || c.Width != tt.width || c.Height != tt.height {
				t.Errorf("%+v, %v", c, err)
			}
			if s := av1.CodecString(c.Header); s != tt.codec {
				t.Errorf("codec %q", s)
			}
			b, err := av1.AppendConfig(nil, c.Header)
			if err != nil || hex.EncodeToString(b) != tt.av1C+tt.header { // as ffmpeg writes it
				t.Errorf("av1C %x, %v", b, err)
			}
			back, err := av1.ParseConfig(b)
			if err != nil || !bytes.Equal(back, c.Header) {
				t.Errorf("%x, %v", back, err)
			}
		})
	}
	whole := codectest.Unhex(t, header)
	for n := range whole {
		if _, err := av1.TrackConfig(whole[:n]); !errors.Is(err, av1.ErrMalformed) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	for _, bad := range []string{"", "81000c", "01000c00", "81000c000aff"} {
		if _, err := av1.ParseConfig(codectest.Unhex(t, bad)); !errors.Is(err, av1.ErrMalformed) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if h, err := av1.ParseConfig(codectest.Unhex(t, "81000c00")); h != nil || err != nil {
		t.Errorf("no OBUs: %x %v", h, err)
	}
}

func TestSample(t *testing.T) {
	t.Parallel()
	h := codectest.Unhex(t, header)
	for name, tt := range map[string]struct {
		in, want []byte
		key      bool
	}{
		"key": {
			bytes.Join([][]byte{delimiter, h, padding, key}, nil), append(bytes.Clone(h), key...), true,
		},
		"nothing to do":      {append(bytes.Clone(h), key...), append(bytes.Clone(h), key...), true},
		"key without header": {key, key, false},
		"hidden key":         {append(bytes.Clone(h), hidden...), append(bytes.Clone(h), hidden...), false},
		"inter":              {append(bytes.Clone(delimiter), inter...), inter, false},
		"unsized at the end": {append(bytes.Clone(h), unsized...), append(bytes.Clone(h), key...), true},
	} {
		got, err := av1.Sample(tt.in)
		if err != nil || !bytes.Equal(got, tt.want) || av1.IsKey(got) != tt.key {
			t.Errorf("%s: %x, %v, %v", name, got, av1.IsKey(got), err)
		}
		if bytes.Contains(tt.in, h) && !bytes.Equal(av1.SequenceHeader(got), h) {
			t.Errorf("%s: header %x", name, av1.SequenceHeader(got))
		}
	}
	for name, bad := range map[string][]byte{
		"nothing": nil, "a lie": {0x32, 9, 1}, "forbidden bit": {0x92, 0}, "no frame": h,
		"endless size": {0x32, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		if got, err := av1.Sample(bad); !errors.Is(err, av1.ErrMalformed) {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
}

func FuzzSample(f *testing.F) {
	f.Add(bytes.Join([][]byte{delimiter, codectest.Unhex(f, header), padding, key}, nil))
	f.Add(append(codectest.Unhex(f, header10), unsized...))
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := av1.Sample(b)
		if err != nil {
			return
		}
		again, err := av1.Sample(out)
		if err != nil || !bytes.Equal(out, again) || len(out) > len(b)+8 {
			t.Fatalf("%x of %x, %v", again, out, err)
		}
		if av1.IsKey(out) != av1.IsKey(again) {
			t.Fatal("key")
		}
	})
}

func FuzzInfo(f *testing.F) {
	f.Add(codectest.Unhex(f, header))
	f.Add(codectest.Unhex(f, header10))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := av1.TrackConfig(b)
		if err != nil {
			return
		}
		if c.Width <= 0 || c.Height <= 0 || c.Width > 65536 || c.Height > 65536 ||
			!strings.HasPrefix(av1.CodecString(b), "av01.") {
			t.Fatalf("%+v %q", c, av1.CodecString(b))
		}
		box, err := av1.AppendConfig(nil, b)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := av1.ParseConfig(box); err != nil || !bytes.Equal(back, b) {
			t.Fatalf("%x %v", back, err)
		}
	})
}
