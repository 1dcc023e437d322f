package hlscheck

import (
	"testing"
	"time"
)

// TestPartBytes: parts that were fetched are the segment. Behind the end of a stream, whose playlist lists no parts, the
// last one was never listed.
func TestPartBytes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		listed  int
		fetched []string
		ok      bool
	}{
		"all":                     {2, []string{"ab", "cd"}, true},
		"another":                 {2, []string{"ab", "cx"}, false},
		"listed, but not all":     {2, []string{"ab", "c"}, false},
		"not fetched":             {2, []string{"ab"}, true},
		"no longer listed":        {0, []string{"ab", "cd"}, true},
		"the last was not listed": {0, []string{"ab"}, true},
		"another, not listed":     {0, []string{"ax"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &checker{checked: map[string]int{}, seen: map[string]int{}, last: map[string]int{}}
			v := &rendition{c: c, parts: map[partKey]*partSeen{}}
			for i, data := range tt.fetched {
				v.parts[partKey{7, i}] = &partSeen{data: []byte(data)}
			}
			v.checkPartBytes("https://x.example/v/7.m4s", entry{msn: 7, parts: make([]partTag, tt.listed)}, []byte("abcd"))
			if ok := len(c.findings) == 0; ok != tt.ok {
				t.Errorf("findings %v", c.findings)
			}
		})
	}
}

// TestDatedOverAHole: what is left of a hole in front of a picture belongs to its segment, which is dated where the one
// before ends; sound that has no hole is not. Without a hole as long as that they are dated apart.
func TestDatedOverAHole(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for what, tt := range map[string]struct {
		hole, date time.Duration
		good       bool
	}{
		"no hole":             {0, 0, true},
		"a hole":              {-240 * time.Millisecond, -240 * time.Millisecond, true},
		"a shorter hole":      {-100 * time.Millisecond, -240 * time.Millisecond, false},
		"a date behind it":    {-240 * time.Millisecond, 240 * time.Millisecond, false},
		"a date without hole": {0, -240 * time.Millisecond, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := &checker{checked: map[string]int{}, seen: map[string]int{}, last: map[string]int{}}
			segment := func(scale uint32, hole, date time.Duration) *rendition {
				return &rendition{c: c, segments: map[int]*segmentSeen{0: {
					entry: entry{pdt: day.Add(date)}, init: &initSeen{info: &initInfo{timescale: scale}},
					start: uint64((10*time.Second + hole).Seconds() * float64(scale)), pts: 10, fragment: true,
				}}}
			}
			c.checkPair(segment(90000, tt.hole, tt.date), segment(48000, 0, 0))
			if good := len(c.findings) == 0; good != tt.good {
				t.Errorf("findings: %v", c.findings)
			}
		})
	}
}
