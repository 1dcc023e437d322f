package captions

import (
	"slices"
	"testing"
	"time"
)

// TestJoined: what was cut at the end of a segment is one cue again, and nothing else is.
func TestJoined(t *testing.T) {
	t.Parallel()
	cue := func(from, to int, settings, text string) Cue {
		return Cue{
			Start: time.Duration(from) * time.Second, End: time.Duration(to) * time.Second, Settings: settings,
			Text: text,
		}
	}
	for name, tt := range map[string]struct{ cues, want []Cue }{
		"cut twice": {
			[]Cue{cue(1, 2, "", "one\ntwo"), cue(2, 4, "", "one\ntwo"), cue(4, 5, "", "one\ntwo")},
			[]Cue{cue(1, 5, "", "one\ntwo")},
		},
		"two blocks at once": {
			[]Cue{
				cue(1, 2, "line:10%", "above"), cue(1, 2, "line:90%", "below"),
				cue(2, 3, "line:10%", "above"), cue(2, 4, "line:90%", "below"),
			},
			[]Cue{cue(1, 3, "line:10%", "above"), cue(1, 4, "line:90%", "below")},
		},
		"in the middle of a line": {
			[]Cue{cue(1, 2, "", "<i>one</i>\n<i>tw</i>"), cue(2, 4, "", "<i>one</i>\n<i>two</i>")},
			[]Cue{cue(1, 4, "", "<i>one</i>\n<i>two</i>")},
		},
		"a line that comes later":    {[]Cue{cue(1, 2, "", "one"), cue(2, 4, "", "one\ntwo")}, nil},
		"another text":               {[]Cue{cue(1, 2, "", "one"), cue(2, 4, "", "two")}, nil},
		"the same again":             {[]Cue{cue(1, 2, "", "No."), cue(3, 4, "", "No.")}, nil},
		"the same in another place":  {[]Cue{cue(1, 2, "line:10%", "one"), cue(2, 4, "line:90%", "one")}, nil},
		"the same at the same time":  {[]Cue{cue(1, 3, "", "one"), cue(2, 4, "", "one")}, nil},
		"two that one of them is of": {[]Cue{cue(1, 3, "", "one"), cue(2, 3, "", "two"), cue(3, 4, "", "three")}, nil},
		"nothing":                    {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := tt.want
			if want == nil {
				want = tt.cues
			}
			if got := New(tt.cues).Joined().Cues(); !slices.Equal(got, want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
