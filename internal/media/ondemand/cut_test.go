package ondemand

import (
	"slices"
	"testing"
)

// cutAll cuts a row of samples of ten ticks each: I an IDR, i another sync sample, anything else one that depends on
// others. A segment is wanted to last 40 ticks.
func cutAll(frames string, size int64, lookAhead bool) []int {
	c := cutter{wanted: 40, limit: 120, maxBytes: 1000}
	cuts := []int{0}
	for i, s := range frames {
		alone := false
		if lookAhead && (s == 'I' || i == 0) {
			next := len(frames)
			for k := i + 1; k < len(frames); k++ {
				if frames[k] == 'I' {
					next = k
					break
				}
			}
			alone = (next-i)*10 > 120
		}
		cuts = append(cuts, c.next(i, int64(i)*10, size, s == 'I' || s == 'i', s == 'I', alone)...)
	}
	return cuts
}

// TestFirstCutsComeSooner: a segment is wanted to last as long as all before it, until it is as long as wanted.
func TestFirstCutsComeSooner(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		frames string
		want   []int
	}{
		{"IIIIIIIIIIIIIIIIIIII", []int{1, 2, 4, 8, 12, 16}},
		{"IpIpIpIpIpIpIpIpIpIp", []int{2, 4, 8, 12, 16}},
		{"IpppIpppIpppIppp", []int{4, 8, 12}},
		{"IpppppppppIpppppppppI", []int{10, 20}},
	} {
		c := cutter{wanted: 40, first: 10, limit: 120, maxBytes: 1000}
		var cuts []int
		for i, s := range tt.frames {
			cuts = append(cuts, c.next(i, 500+int64(i)*10, 1, s == 'I', s == 'I', false)...)
		}
		if !slices.Equal(cuts, tt.want) {
			t.Errorf("%s is cut at %v, want %v", tt.frames, cuts, tt.want)
		}
	}
}

func TestCuts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		frames    string
		size      int64
		lookAhead bool
		want      []int
	}{
		"every second":     {"IpIpIpIpIpIpIp", 1, false, []int{0, 4, 8, 12}},
		"three are nearer": {"IppIppIppIpp", 1, false, []int{0, 3, 6, 9}}, // 3 is nearer to 4 than 6 is
		"exactly":          {"IpppIpppIppp", 1, false, []int{0, 4, 8}},
		"ten":              {"IpppppppppIpppppppppIp", 1, false, []int{0, 10, 20}},
		"too far":          {"IpppppppppppppppI", 1, false, []int{0, 12, 16}},
		// back to the last IDR rather than anywhere
		"short then far":     {"IpIpppppppppppppp", 1, false, []int{0, 2, 14}},
		"known to be far":    {"IpppppppppppppppI", 1, true, []int{0, 4, 8, 12, 16}},
		"open":               {"IpppippppippppippppipppI", 1, true, []int{0, 4, 9, 14, 19, 23}},
		"open, not known":    {"IpppippppippppippppipppI", 1, false, []int{0, 9, 14, 19, 23}},
		"no key in front":    {"ppppppppIppp", 1, true, []int{0, 8}},
		"heavy":              {"IppIppIpp", 300, false, []int{0, 3, 6}},
		"heavy without keys": {"Ippppppp", 300, false, []int{0, 3, 6}},
		"each too heavy":     {"IpI", 2000, false, []int{0, 1, 2}},
		"one":                {"I", 1, false, []int{0}},
		"nothing":            {"", 1, false, []int{0}},
		"only keys":          {"IIIIIIIIII", 1, false, []int{0, 4, 8}},
		"only other sync":    {"iiiiiiiiii", 1, true, []int{0}},
		"sync becomes good":  {"Ippppppppppppppipppppip", 1, true, []int{0, 4, 8, 12, 15, 19, 21}},
	} {
		if got := cutAll(tt.frames, tt.size, tt.lookAhead); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %s is cut at %v, want %v", name, tt.frames, got, tt.want)
		}
	}
}
