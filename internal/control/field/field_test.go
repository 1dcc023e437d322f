package field

import (
	"math"
	"strings"
	"testing"

	"millrace/internal/fault"
)

func TestRules(t *testing.T) {
	const noBreaks = "p must not contain line breaks or other control characters"
	const noPort = "u must have a port from 1 to 65535, or none"
	t.Parallel()
	for _, tt := range []struct {
		name string
		rule func(l *fault.List)
		want string // empty: allowed
	}{
		{"as long as allowed, in characters", func(l *fault.List) { Text(l, "a.b", strings.Repeat("é🎥", 5), 10) }, ""},
		{
			"one too long", func(l *fault.List) { Text(l, "a.b", strings.Repeat("é🎥", 5)+"x", 10) },
			"a.b may have at most 10 characters",
		},
		{"U+0000", func(l *fault.List) { Text(l, "p", "a\x00b", 10) }, "p must not contain the character U+0000"},
		{"not UTF-8", func(l *fault.List) { Text(l, "p", "a\xff", 10) }, "p must be valid UTF-8"},
		{"a name", func(l *fault.List) { Name(l, "p", "É 🎥 \u202e\u00a0\u200d", 10) }, ""},
		{"a long name", func(l *fault.List) { Name(l, "p", "abc", 2) }, "p may have at most 2 characters"},
		{"a name of two lines", func(l *fault.List) { Name(l, "p", "a\rb", 9) }, noBreaks},
		{"a name with LF", func(l *fault.List) { Name(l, "p", "a\n", 9) }, noBreaks},
		{"a name with NEL", func(l *fault.List) { Name(l, "p", "a\u0085b", 9) }, noBreaks},
		{"a name with a line separator", func(l *fault.List) { Name(l, "p", "a\u2028b", 9) }, noBreaks},
		{"a name with a paragraph separator", func(l *fault.List) { Name(l, "p", "\u2029", 9) }, noBreaks},
		{"a name with ESC", func(l *fault.List) { Name(l, "p", "\x1b[2J", 9) }, noBreaks},
		{"passthrough of two lines", func(l *fault.List) { Passthrough(l, "p", "a\r\nb") }, ""},
		{"passthrough", func(l *fault.List) { Passthrough(l, "p", strings.Repeat("x", 255)) }, ""},
		{
			"long passthrough", func(l *fault.List) { Passthrough(l, "p", strings.Repeat("x", 256)) },
			"p may have at most 255 characters",
		},
		{"one of", func(l *fault.List) { OneOf(l, "p", "b", "a", "b") }, ""},
		{"none of", func(l *fault.List) { OneOf(l, "p", "secret", "a", "b") }, "p must be one of: a, b"},
		{"low", func(l *fault.List) { Between(l, "p", -0.1, 0, 1800) }, "p must be a number from 0 to 1800"},
		{"high", func(l *fault.List) { Between(l, "p", 1800.1, 0, 1800) }, "p must be a number from 0 to 1800"},
		{"NaN", func(l *fault.List) { Between(l, "p", math.NaN(), 0, 1) }, "p must be a number from 0 to 1"},
		{"infinite", func(l *fault.List) { Between(l, "p", math.Inf(1), 0, 1) }, "p must be a number from 0 to 1"},
		{"both ends", func(l *fault.List) { Between(l, "p", 0, 0, 1); Between(l, "p", 1, 0, 1) }, ""},
		{"web URL", func(l *fault.List) { WebURL(l, "u", "https://u:p@host:8/x?y=z#f") }, ""},
		{"upper case scheme", func(l *fault.List) { WebURL(l, "u", "HTTP://host") }, ""},
		{"IPv6 URL", func(l *fault.List) { WebURL(l, "u", "http://[::1]/x") }, ""},
		{"relative URL", func(l *fault.List) { WebURL(l, "u", "/x") }, "u must be an absolute http or https URL"},
		{
			"other scheme", func(l *fault.List) { WebURL(l, "u", "file:///etc/passwd") },
			"u must be an absolute http or https URL",
		},
		{"no host", func(l *fault.List) { WebURL(l, "u", "http://:80/x") }, "u must be an absolute http or https URL"},
		{"largest port", func(l *fault.List) { WebURL(l, "u", "http://host:65535") }, ""},
		{"port 0", func(l *fault.List) { WebURL(l, "u", "http://host:0/x") }, noPort},
		{"port 99999", func(l *fault.List) { WebURL(l, "u", "http://host:99999/x") }, noPort},
		{"no URL", func(l *fault.List) { WebURL(l, "u", "http://a b") }, "u must be an absolute http or https URL"},
		{
			"long URL",
			func(l *fault.List) { WebURL(l, "u", "http://h/"+strings.Repeat("x", MaxURL-len("http://h/"))) }, "",
		},
		{
			"too long a URL",
			func(l *fault.List) { WebURL(l, "u", "http://h/"+strings.Repeat("x", MaxURL-len("http://h/")+1)) },
			"u may have at most 8192 characters",
		},
		{"language", func(l *fault.List) { Language(l, "c", "pt-BR") }, ""},
		{"no language", func(l *fault.List) { Language(l, "c", "english") }, "c must be a BCP 47 language tag"},
		{"too many", func(l *fault.List) { Count(l, "c", 7, 6) }, "c may have at most 6 entries"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var l fault.List
			tt.rule(&l)
			got := strings.Join(fault.Messages(l.Err()), "; ")
			if tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if strings.Contains(got, "secret") {
				t.Errorf("%q repeats the value", got)
			}
		})
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		page, limit, wantPage, wantLimit int
		bad                              bool
	}{
		{0, 0, 1, 25, false},
		{3, 100, 3, 100, false},
		{1, 101, 0, 0, true},
		{-1, 1, 0, 0, true},
		{1, -1, 0, 0, true},
		{1 << 40, 1, 0, 0, true},
	} {
		page, limit, err := Page(tt.page, tt.limit)
		if (err != nil) != tt.bad || err == nil && (page != tt.wantPage || limit != tt.wantLimit) {
			t.Errorf("page %d of %d gives %d, %d, %v", tt.page, tt.limit, page, limit, err)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	if got := Join(At(Join("", "a"), 2), "b"); got != "a[2].b" {
		t.Errorf("got %q", got)
	}
}

func FuzzWebURL(f *testing.F) {
	f.Add("https://example.com/x")
	f.Fuzz(func(t *testing.T, v string) {
		var l fault.List
		if WebURL(&l, "u", v) != (l.Err() == nil) {
			t.Errorf("%q: the response and the messages %v differ", v, l.Err())
		}
	})
}
