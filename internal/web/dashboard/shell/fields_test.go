package shell

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"millrace/internal/fault"
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

// TestFields: a message stands beside the field that its path names, however its text begins, and one that names none
// above the form.
func TestFields(t *testing.T) {
	t.Parallel()
	s := FormErrors{Fields: []Field{{"inputs", "url", "Address"}, {"name", "name", "Name"}, {"", "other", "Other"}}}
	s.AddMessages([]fault.Message{
		{Path: "inputs[0].url", Text: "must be given"},
		{Path: "name", Text: ": a part is wrong"},
		{Path: "names", Text: "must be few"},
		{Text: "name is no path here"},
		{Path: "other", Text: "is odd"},
	})
	bad := map[string]string{"url": "This must be given.", "name": "This a part is wrong."}
	top := []string{"Names must be few.", "Name is no path here.", "Other is odd."}
	if !maps.Equal(s.Bad, bad) || !slices.Equal(s.Top, top) {
		t.Errorf("beside fields %q, above %q", s.Bad, s.Top)
	}
}

// FuzzComplain: each message of the service is shown, wherever it belongs.
func FuzzComplain(f *testing.F) {
	for _, text := range []string{"", "url", "url must be short", "\u202eurl is", "éa", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := FormErrors{Fields: []Field{{"url", "url", "Address"}}}
		path, rest, _ := strings.Cut(text, " ")
		s.AddMessages([]fault.Message{{Path: path, Text: rest}})
		if len(s.Bad)+len(s.Top) != 1 || utf8.ValidString(text) && len(s.Top) == 1 && !utf8.ValidString(s.Top[0]) {
			t.Errorf("%q is %q and %q", text, s.Bad, s.Top)
		}
	})
}
