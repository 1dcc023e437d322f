package worker

import (
	"slices"
	"testing"
)

// TestSpelling: how phrases are spoken that no dictionary has: letter by letter, digit by digit, without accents, or by
// the rules of the language.
func TestSpelling(t *testing.T) {
	t.Parallel()
	s := &speller{
		known: map[string]string{
			"five": "F AY V", "zero": "Z IH R OW", "g.": "JH IY", "c.": "S IY", "h.": "EY CH", "t.": "T IY",
			"p.": "P IY", "n.": "EH N", "a.": "EY", "s.": "EH S",
			"a": "AH", "plus": "P L AH S", "and": "AE N D", "hello": "HH AH L OW",
		},
		guess: func(word string) string { return "(" + word + ")" },
	}
	for _, tt := range []struct {
		phrase string
		words  []string
		sounds string
	}{
		{"5G", []string{"5", "G"}, "F AY V JH IY"},
		{"50", []string{"5", "0"}, "F AY V Z IH R OW"},
		{"C++", []string{"C", "plus", "plus"}, "S IY P L AH S P L AH S"},
		{"HTTP", []string{"HTTP"}, "EY CH T IY T IY P IY"},
		{"http", []string{"http"}, "EY CH T IY T IY P IY"},
		{"NASA", []string{"NASA"}, "EH N EY EH S EY"},
		{"Über", []string{"Uber"}, "(uber)"},
		{"Zorvex", []string{"Zorvex"}, "(zorvex)"},
		{"hello Zorvex", []string{"hello", "Zorvex"}, "HH AH L OW (zorvex)"},
		{"HELLO", []string{"HELLO"}, "HH AH L OW"},
		{"CAPITALS", []string{"CAPITALS"}, "(capitals)"},
		{"A&T", []string{"A", "and", "T"}, "AH AE N D T IY"},
		{"'tis", []string{"tis"}, "(tis)"},
		{"…", []string{}, ""},
		{"東京", []string{}, ""},
	} {
		if got := splitWords(tt.phrase); !slices.Equal(got, tt.words) {
			t.Errorf("%q is split into %q, want %q", tt.phrase, got, tt.words)
		}
		if got := s.phrase(tt.phrase); got != tt.sounds {
			t.Errorf("%q is spoken %q, want %q", tt.phrase, got, tt.sounds)
		}
	}
}
