package hlscheck

import "testing"

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
