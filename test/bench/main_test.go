package main

import (
	"slices"
	"testing"
)

// TestNumbers: density is measured at each number of streams that is asked for.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]int{"30": {30}, "30,120": {30, 120}, "": nil, "30,": nil, "0": nil, "a": nil} {
		got, err := numbers(list)
		if (err == nil) != (want != nil) || err == nil && !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
}
