package h264_test

import (
	"testing"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/nal"
)

func TestEntry(t *testing.T) {
	t.Parallel()
	slice, idr := []byte{0x41, 0x9a}, []byte{0x65, 0x88}
	for name, tt := range map[string]struct {
		units    [][]byte
		idr      bool
		recovery int
	}{
		"IDR":                    {[][]byte{{0x67, 0x42}, idr}, true, 0},
		"no SEI":                 {[][]byte{slice}, false, 0},
		"at once":                {[][]byte{{0x06, 6, 1, 0xc0, 0x80}, slice}, false, 0},
		"after 38 frames":        {[][]byte{{0x06, 6, 2, 0x04, 0xe0, 0x80}, slice}, false, 38},
		"behind another message": {[][]byte{{0x06, 5, 2, 9, 9, 6, 2, 0x04, 0xe0, 0x80}, slice}, false, 38},
		"behind a long message": {
			[][]byte{append(append([]byte{0x06, 5, 0xff, 1}, make([]byte, 256)...), 6, 2, 0x04, 0xe0, 0x80), slice},
			false, 38,
		},
		"of the next picture":      {[][]byte{slice, {0x06, 6, 2, 0x04, 0xe0, 0x80}}, false, 0},
		"a message that is cut":    {[][]byte{{0x06, 6, 9, 0x04}, slice}, false, 0},
		"a number that is cut":     {[][]byte{{0x06, 6, 1, 0x00, 0x80}, slice}, false, 0},
		"a kind without an end":    {[][]byte{{0x06, 0xff, 0xff, 0xff}, slice}, false, 0},
		"a size without an end":    {[][]byte{{0x06, 6, 0xff, 0xff}, slice}, false, 0},
		"nothing":                  {nil, false, 0},
		"SEI of an IDR is no news": {[][]byte{{0x06, 6, 2, 0x04, 0xe0, 0x80}, idr}, true, 0},
	} {
		if is, n := h264.Entry(nal.Append(nil, tt.units...), 4); is != tt.idr || n != tt.recovery {
			t.Errorf("%s: IDR %v, %d frames, want %v, %d", name, is, n, tt.idr, tt.recovery)
		}
	}
}

// TestRecovers tells a recovery point that is right at once from a picture that is none.
func TestRecovers(t *testing.T) {
	t.Parallel()
	slice := []byte{0x41, 0x9a}
	for name, tt := range map[string]struct {
		units  [][]byte
		frames int
		ok     bool
	}{
		"IDR":             {[][]byte{{0x67, 0x42}, {0x65, 0x88}}, 0, true},
		"no SEI":          {[][]byte{slice}, 0, false},
		"another message": {[][]byte{{0x06, 5, 2, 9, 9, 0x80}, slice}, 0, false},
		"at once":         {[][]byte{{0x06, 6, 1, 0xc0, 0x80}, slice}, 0, true},
		"after 38 frames": {[][]byte{{0x06, 6, 2, 0x04, 0xe0, 0x80}, slice}, 38, true},
		"nothing":         {nil, 0, false},
	} {
		if n, ok := h264.Recovers(nal.Append(nil, tt.units...), 4); ok != tt.ok || n != tt.frames {
			t.Errorf("%s: %d frames, %v, want %d, %v", name, n, ok, tt.frames, tt.ok)
		}
	}
}

func FuzzEntry(f *testing.F) {
	f.Add(nal.Append(nil, []byte{0x06, 5, 2, 9, 9, 6, 2, 0x04, 0xe0, 0x80}, []byte{0x41, 0x9a}))
	f.Fuzz(func(t *testing.T, au []byte) {
		if idr, n := h264.Entry(au, 4); n < 0 || idr && n > 0 {
			t.Fatalf("IDR %v, %d frames", idr, n)
		}
	})
}
