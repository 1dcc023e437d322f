package upload

import "testing"

func TestContentRange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want contentRange
		ok   bool
	}{
		{"bytes 0-262143/524288", contentRange{first: 0, end: 262144, total: 524288}, true},
		{"bytes 5-5/*", contentRange{first: 5, end: 6, total: -1}, true},
		{"bytes */10", contentRange{query: true, total: 10}, true},
		{"bytes */*", contentRange{query: true, total: -1}, true},
		{"bytes 0-10/10", contentRange{}, false},
		{"bytes 5-4/10", contentRange{}, false},
		{"bytes -5/10", contentRange{}, false},
		{"bytes 0-/10", contentRange{}, false},
		{"bytes 0-1", contentRange{}, false},
		{"bytes=0-1/2", contentRange{}, false},
		{"bytes 0-1/+2", contentRange{}, false},
		{"bytes 0-9223372036854775807/*", contentRange{}, false},
		{"", contentRange{}, false},
	} {
		if got, err := parseContentRange(tt.in); got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%q: %+v, %v", tt.in, got, err)
		}
	}
}

// FuzzContentRange says that what is read is a range inside of its file, whose length is more than none.
func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-262143/524288", "bytes */*", "bytes 7-8/*", "bytes */12"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := parseContentRange(s)
		if err == nil && !r.query && (r.first < 0 || r.end <= r.first || r.total >= 0 && r.end > r.total) {
			t.Errorf("%q: %+v", s, r)
		}
	})
}
