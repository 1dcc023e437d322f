package justintime

import (
	"slices"
	"testing"

	"millrace/internal/media/container/cmaf"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	every := make([]int, 120)
	for i := range every {
		every[i] = i
	}
	for name, tt := range map[string]struct {
		entries       []int
		n, processors int
		want          []int
	}{
		"two groups":                     {[]int{0, 59}, 118, 2, []int{0, 59}},
		"one group":                      {[]int{0}, 118, 2, nil},
		"one processor":                  {[]int{0, 59}, 118, 1, nil},
		"four groups":                    {[]int{0, 30, 60, 90}, 120, 2, []int{0, 60}},
		"a short group in between":       {[]int{0, 59, 83}, 142, 2, []int{0, 59, 83}},
		"a short group in front":         {[]int{0, 24, 83}, 142, 2, []int{0, 24, 83}},
		"a very short group at the end":  {[]int{0, 110}, 118, 2, nil},
		"a very short group in front":    {[]int{0, 4, 60}, 120, 2, []int{0, 60}},
		"more does not help":             {[]int{0, 30}, 120, 2, []int{0, 30}},
		"every picture, two processors":  {every, 120, 2, []int{0, 60}},
		"every picture, four processors": {every, 120, 4, []int{0, 30, 60, 90}},
		"few pictures":                   {every[:20], 20, 8, nil},
		"it does not begin with one":     {[]int{7, 60}, 120, 2, nil},
		"nothing":                        {nil, 0, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := spread(tt.entries, tt.n, tt.processors); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// Parts begin only where nothing that comes before is needed or shown later.
func TestEntries(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pts  []int64 // in the order of decoding, a tick each
		keys []int
		want []int
	}{
		"as they are shown":           {[]int64{0, 1, 2, 3}, []int{0, 2}, []int{0, 2}},
		"B-frames, closed":            {[]int64{2, 5, 3, 4, 6, 9, 7, 8}, []int{0, 4}, []int{0, 4}},
		"B-frames, open":              {[]int64{2, 5, 3, 4, 8, 6, 7, 9}, []int{0, 4}, []int{0}},
		"shown earlier than before":   {[]int64{2, 6, 5, 7}, []int{0, 2}, []int{0}},
		"it begins with leading ones": {[]int64{5, 3, 4, 6}, []int{0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := feed{}
			for i, pts := range tt.pts {
				f.dts = append(f.dts, int64(i))
				f.samples = append(f.samples, cmaf.Sample{
					CompositionOffset: int32(pts - int64(i)), Sync: slices.Contains(tt.keys, i),
				})
			}
			if got := f.entries(); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
