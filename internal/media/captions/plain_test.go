package captions

import (
	"testing"
	"time"
)

func TestTranscript(t *testing.T) {
	t.Parallel()
	const s = time.Second
	d := New([]Cue{
		{Start: s, End: 2 * s, Text: "<v Ann>Fish &amp; <i>chips</i>"},
		{Start: 2 * s, End: 3 * s, Text: Escape("a < b\nand so on")},
		{Start: 9 * s, End: 10 * s, Text: "The end."},
	})
	if got, want := string(d.Transcript()), "Fish & chips a < b and so on\nThe end.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (Document{}).Transcript(); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
}

// TestTranscriptOfRollUp: each line of captions that roll up is there once, also where a line is erased, or said again.
func TestTranscriptOfRollUp(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{
		"one two three four five\n": {"one", "one\ntwo", "<i>one</i>\ntwo\nthree", "two\nthree\nfour", "five"},
		"no no no\n":                {"no", "no", "no"},
		"one two one\n":             {"one\ntwo", "two\none"},
		"one two, one and two\n":    {"one\ntwo,", "one\nand two"},
	} {
		var cues []Cue
		for i, text := range texts {
			at := time.Duration(i) * 1500 * time.Millisecond
			cues = append(cues, Cue{Start: at, End: at + 1500*time.Millisecond, Text: text})
		}
		if got := string(New(cues).Transcript()); got != want {
			t.Errorf("%q is %q, want %q", texts, got, want)
		}
	}
}
