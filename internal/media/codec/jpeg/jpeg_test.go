package jpeg_test

import (
	"bytes"
	"image"
	"image/jpeg"
	"testing"

	scans "millrace/internal/media/codec/jpeg"
)

func TestScans(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewRGBA(image.Rect(0, 0, 40, 30)), nil); err != nil {
		t.Fatal(err)
	}
	scan := "\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x00"
	for name, tt := range map[string]struct {
		data string
		want int
	}{
		"nothing":                   {"", 0},
		"a picture":                 {b.String(), 1},
		"two":                       {b.String() + b.String(), 2},
		"one inside of a segment":   {"\xff\xd8\xff\xe1\x00\x0c" + scan + "\xff\xd9", 0},
		"scans of nothing":          {"\xff\xd8" + scan + "\x00" + scan + scan + "\xff\xd9", 3},
		"stuffing and fill":         {"\xff\xd8" + scan + "\xff\x00\xda\xff\xd0\xff\xff\xff" + scan[1:] + "\x11", 2},
		"cut off":                   {"\xff\xd8\xff\xda", 1},
		"a length beyond the end":   {"\xff\xd8\xff\xe0\xff\xff" + scan, 0},
		"a length of nothing":       {"\xff\xd8\xff\xe0\x00\x00" + scan, 1},
		"the last byte is a prefix": {scan + "\xff", 1},
	} {
		if got := scans.Scans([]byte(tt.data)); got != tt.want {
			t.Errorf("%s: %d scans, want %d", name, got, tt.want)
		}
	}
}

func FuzzScans(f *testing.F) {
	f.Add([]byte("\xff\xd8\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x00\x00\xff\xd9"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n := scans.Scans(data); n < 0 || n > len(data)/2 {
			t.Fatalf("%d scans in %d bytes", n, len(data))
		}
	})
}
