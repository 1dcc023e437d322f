package captions

import (
	"testing"
	"time"
)

func TestTranscript(t *testing.T) {
	t.Parallel()
	const s = time.Second
	d := New([]Cue{
		{Start: s, End: 2 * s, Text: "<v Ann>Fish &amp; <i>chips</i>"}, {Start: 2 * s, End: 3 * s, Text: Escape("a < b\nand so on")}, {Start: 9 * s, End: 10 * s, Text: "The end."},
	})
	if got, want := string(d.Transcript()), "Fish & chips a < b and so on\nThe end.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (Document{}).Transcript(); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
}
