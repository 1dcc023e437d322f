package fetch_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"millrace/internal/fetch"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		header, date string
		want         time.Duration
	}{
		"none":               {"", "", 0},
		"seconds":            {" 120 ", "", 2 * time.Minute},
		"no wait":            {"0", "", 0},
		"a day":              {"86400", "", 24 * time.Hour},
		"more than a day":    {"86401", "", 24 * time.Hour},
		"overflows duration": {"9223372036854775807", "", 24 * time.Hour},
		"overflows":          {strings.Repeat("9", 1000), "", 24 * time.Hour},
		"negative":           {"-1", "", 0},
		"signed":             {"+5", "", 0},
		"a fraction":         {"1.5", "", 0},
		"hexadecimal":        {"0x10", "", 0},
		"with a unit":        {"5s", "", 0},
		"a date":             {"Thu, 01 Jan 2026 12:05:00 GMT", "", 5 * time.Minute},
		"a date of RFC 850":  {"Thursday, 01-Jan-26 12:05:00 GMT", "", 5 * time.Minute},
		"a date of asctime":  {"Thu Jan  1 12:05:00 2026", "", 5 * time.Minute},
		"a past date":        {"Thu, 01 Jan 2026 11:55:00 GMT", "", 0},
		"a far date":         {"Fri, 31 Dec 9999 23:59:59 GMT", "", 24 * time.Hour},
		"by its clock":       {"Wed, 01 Jan 2025 00:01:00 GMT", "Wed, 01 Jan 2025 00:00:00 GMT", time.Minute},
		"by no clock":        {"Thu, 01 Jan 2026 12:05:00 GMT", "noon", 5 * time.Minute},
		"no date":            {"tomorrow", "", 0},
	} {
		header := http.Header{"Retry-After": {tt.header}, "Date": {tt.date}}
		if got := fetch.RetryAfter(header, now); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	const date = "Thu, 01 Jan 2026 12:05:00 GMT"
	for _, s := range []string{"120", "-1", "99999999999999999999", date, "Fri, 31 Dec 9999 23:59:59 GMT", ""} {
		f.Add(s, "")
		f.Add(s, date)
	}
	f.Fuzz(func(t *testing.T, after, sent string) {
		wait := fetch.RetryAfter(http.Header{"Retry-After": {after}, "Date": {sent}}, time.Unix(0, 0))
		if wait < 0 || wait > fetch.MaxRetryAfter {
			t.Errorf("%q, sent %q: %v", after, sent, wait)
		}
	})
}
