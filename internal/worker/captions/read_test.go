package captions

import (
	"testing"

	"millrace/internal/fault"
	"millrace/internal/media/captions"
)

// TestManyCaptions: no more captions are kept than a track may have, and more are an error of the file.
func TestManyCaptions(t *testing.T) {
	t.Parallel()
	c := &channels{cues: map[string][]captions.Cue{}}
	n := 0
	for c.Publish("cc1", captions.Cue{Text: "x"}) && n <= captions.MaxCues {
		n++
	}
	if n != captions.MaxCues || !fault.Is(c.err(), fault.Invalid) {
		t.Errorf("%d captions are taken, %v", n, c.err())
	}
}
