package justintime

import (
	"fmt"
	"testing"
)

// There is a movie fragment for each part of the source's segment, whatever pictures the decoder has left out, and none
// for what viewers have.
func TestFragmentsForEveryPart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		ranks []int // of the pictures that came out of nine
		parts int   // that viewers have
		from  int   // pictures of them
		ends  []int
		want  []int
	}{
		{"all of them", []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, 0, 0, []int{3, 6, 9}, []int{3, 6, 9}},
		{"one is missing", []int{0, 1, 3, 4, 5, 6, 7, 8}, 0, 0, []int{3, 6, 9}, []int{2, 5, 8}},
		{"a part is missing", []int{0, 1, 2, 6, 7, 8}, 0, 0, []int{3, 6, 9}, []int{3, 4, 6}},
		{"the last part is missing", []int{0, 1, 2, 3, 4, 5}, 0, 0, []int{3, 6, 9}, []int{3, 5, 6}},
		{"fewer than parts", []int{0, 8}, 0, 0, []int{3, 6, 9}, []int{0, 1, 2}},
		{"behind the first part", []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, 1, 3, []int{3, 6, 9}, []int{6, 9}},
		{"viewers have all", []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, 3, 9, []int{3, 6, 9}, nil},
		{"of another segment", []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, 0, 0, []int{3, 6}, []int{9}},
		{"nobody knows, behind the first part", []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, 1, 3, nil, []int{9}},
		{"nobody knows, viewers have all", []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, 3, 9, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &feed{parts: tt.parts}
			for i := range 9 {
				f.pts = append(f.pts, int64(i)*3000)
			}
			var pictures []picture
			for _, rank := range tt.ranks {
				pictures = append(pictures, picture{pts: int64(rank) * 3000})
			}
			w := &Work{Parts: func(int64) ([]int, bool) { return tt.ends, false }}
			if got := w.fragments(f, pictures, tt.from); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			f.ends, w.Parts = tt.ends, func(int64) ([]int, bool) { return nil, true }
			if got := w.fragments(f, pictures, tt.from); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("where the source's end: got %v, want %v", got, tt.want)
			}
		})
	}
}
