package dashboard

import (
	"testing"
	"unicode/utf8"
)

// FuzzTime: what is typed as a time is one, or refused.
func FuzzTime(f *testing.F) {
	for _, text := range []string{"", "1", "0:01:30.5", "7,25", "1:60", "99:59:59.99", "1e300", "Inf", ":", ".5", "٣"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v, ok := secondsOf(text); ok && !(v >= 0 && v <= 3661*maxSeconds) {
			t.Errorf("%q is %v", text, v)
		}
	})
}

// FuzzComplain: each message of the service is shown, wherever it belongs.
func FuzzComplain(f *testing.F) {
	for _, text := range []string{"", "url", "url must be short", "\u202eurl is", "éa", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := said{fields: []fieldAt{{"url", "url", "Address"}}}
		s.complain([]string{text})
		if len(s.Bad)+len(s.Top) != 1 || utf8.ValidString(text) && len(s.Top) == 1 && !utf8.ValidString(s.Top[0]) {
			t.Errorf("%q is %q and %q", text, s.Bad, s.Top)
		}
	})
}
