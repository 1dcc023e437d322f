package rtmpwire

import (
	"bytes"
	"testing"
)

// FuzzAMF0 checks that decoding ends, and in bounded depth.
func FuzzAMF0(f *testing.F) {
	f.Add([]byte{2, 0, 1, 'x', 0, 1, 2, 3, 4, 5, 6, 7, 8, 3, 0, 1, 'a', 5, 0, 0, 9})
	f.Add(bytes.Repeat([]byte{10, 0, 0, 0, 1}, 100))
	f.Add([]byte{8, 0, 0, 0, 0, 0, 1, 'a', 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 1, 1, 7, 0, 0, 12, 0, 0, 0, 1, 'x', 16, 0, 0, 0, 0, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := len(DecodeAMF0(b)); n > maxAMFValues {
			t.Errorf("%d values", n)
		}
	})
}
