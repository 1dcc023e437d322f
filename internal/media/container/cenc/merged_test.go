package cenc

import (
	"errors"
	"slices"
	"testing"
)

// TestMerged: however many slices a sample has, no more of it is said than fits, what is protected are whole stretches
// of what was, the largest ones, and every byte is counted once.
func TestMerged(t *testing.T) {
	t.Parallel()
	of := func(n int, sizes ...int) (all []subsample) {
		for i := range n {
			all = append(all, subsample{10, sizes[i%len(sizes)]})
		}
		return all
	}
	for name, tt := range map[string]struct {
		had  []subsample
		most int
		kept int // stretches that stay protected; 0: it is refused
	}{
		"few":                   {of(39, 160), 39, 39},
		"one too many":          {of(40, 160), 39, 38}, // the end is clear
		"one too many, smaller": {append(of(5, 16), of(39, 160)...), 39, 39},
		"of two sizes":          {of(68, 320, 160), 42, 41},
		"a thousand":            {of(1000, 1600), 42, 17}, // what is clear takes 24
		"much that stays clear": {of(100, 40_000), 39, 0},
		"most of it in a few":   {of(100, 100, 100, 100, 1_000_000), 39, 39},
		"clear of old": {
			append(of(50, 160), subsample{mostClear, 0}, subsample{mostClear, 0}, subsample{9, 16}), 39, 36,
		},
		"nothing to protect": {slices.Repeat([]subsample{{mostClear, 0}}, 50), 42, 0},
	} {
		before := []subsample{{1, 2}}
		got, err := merged(slices.Concat(before, tt.had), 1, tt.most)
		if tt.kept == 0 {
			if !errors.Is(err, errClear) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || got[0] != before[0] || len(got)-1 > tt.most {
			t.Errorf("%s: %d subsamples, %v", name, len(got)-1, err)
			continue
		}
		stretches := map[[2]int]bool{}
		smallest, total := 0, 0
		for _, s := range tt.had {
			stretches[[2]int{total + s.clear, s.protected}] = true
			total += s.clear + s.protected
		}
		at, kept := 0, 0
		for _, s := range got[1:] {
			if s.clear > mostClear || s.protected > 0 && !stretches[[2]int{at + s.clear, s.protected}] {
				t.Errorf("%s: %+v at %d is none of those that were", name, s, at)
			}
			if at += s.clear + s.protected; s.protected > 0 {
				if kept++; smallest == 0 || s.protected < smallest {
					smallest = s.protected
				}
			}
		}
		larger := 0
		for _, s := range tt.had {
			if s.protected > smallest {
				larger++
			}
		}
		if at != total || kept != tt.kept || larger > kept {
			t.Errorf("%s: %d bytes of %d, %d protected, want %d; %d are larger than the smallest of them", name, at,
				total, kept,
				tt.kept, larger)
		}
	}
}
