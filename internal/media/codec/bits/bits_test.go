package bits_test

import (
	"testing"

	"millrace/internal/media/codec/bits"
)

func TestReader(t *testing.T) {
	t.Parallel()
	r := bits.NewReader([]byte{0b1_010_011_0, 0b0100_0001, 0xff})
	for i, want := range []int{0, 1, 2, 3} { // 1, 010, 011, 00100
		if got := r.Golomb(); got != want {
			t.Errorf("Golomb %d: %d", i, got)
		}
	}
	if r.Pos() != 12 || r.Bits(3) != 0 || !r.Flag() || r.Left() != 8 || r.Bits(4) != 15 || r.Short() {
		t.Errorf("at %d", r.Pos())
	}
	r.Align()
	if r.Left() != 0 || r.Flag() || !r.Short() {
		t.Error("past the end")
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bits.NewReader(b)
		for !r.Short() {
			if r.Golomb() < 0 {
				t.Fatal("negative")
			}
			r.Skip(3)
		}
		if r.Left() < 0 {
			t.Fatal("read past the end")
		}
	})
}
