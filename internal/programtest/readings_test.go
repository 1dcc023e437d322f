package programtest

import (
	"slices"
	"strings"
	"testing"
)

// TestWordErrors: words that are missing, too many or others are errors, and which word is which is known beside them.
func TestWordErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want, got string
		wrong     int
		same      []int
	}{
		{"a b c", "A b c", 0, []int{0, 1, 2}},
		{"a b c d", "a c d", 1, []int{0, 2, 3}},
		{"a b c", "a x b c", 1, []int{0, -1, 1, 2}},
		{"a b c", "a x c", 1, []int{0, -1, 2}},
		{"a b", "", 2, nil},
		{"", "a b", 2, []int{-1, -1}},
	} {
		want, got := strings.Fields(tt.want), strings.Fields(tt.got)
		if n, same := WordErrors(want, got), SameWords(want, got); n != tt.wrong || !slices.Equal(same, tt.same) {
			t.Errorf("%q for %q: %d errors, %v", tt.got, tt.want, n, same)
		}
	}
	got := Plain("Now, \"picture-books\": it's 5!")
	if want := []string{"now", "picture", "books", "it's", "5"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
