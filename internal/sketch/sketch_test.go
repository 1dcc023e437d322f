package sketch

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCount(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 100, Size - 1, Size, Size + 1, 20_000, 200_000} {
		parts := make([]Sketch, 3) // each sees some of them, and some are seen twice
		var all [3][]uint64
		for range n {
			h, where := r.Uint64(), r.IntN(3)
			all[where] = append(all[where], h)
			all[(where+1)%3] = append(all[(where+1)%3], h, h)
		}
		for i := range parts {
			s, err := Parse(Of(all[i]).Bytes())
			if err != nil {
				t.Fatal(err)
			}
			parts[i] = s
		}
		got := Union(parts...).Count()
		// five standard deviations
		if off := math.Abs(float64(got - n)); n < Size && got != n || off > 0.08*float64(n) {
			t.Errorf("%d, want %d", got, n)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add(Of([]uint64{3, 1, 3}).Bytes())
	f.Add(make([]byte, 9))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			return
		}
		if !slices.IsSorted(s) || s.Count() < 0 {
			t.Errorf("%v counts %d", s, s.Count())
		}
		again, err := Parse(s.Bytes())
		if err != nil || !slices.Equal(again, s) {
			t.Errorf("%v becomes %v, %v", s, again, err)
		}
	})
}
