package captions

import (
	"strings"
	"time"
)

// Joined has those cues be one that follow each other at once in the same place, the second with the same text or with
// more of its last line: a caption that was published up to the end of a segment, and from there on.
func (d Document) Joined() Document {
	type place struct {
		end      time.Duration
		settings string
	}
	var out []Cue
	before := map[place]int{}
	for _, c := range d.cues {
		at := place{c.Start, c.Settings}
		i, follows := before[at]
		if follows && out[i].ID == c.ID && goesOn(out[i].Text, c.Text) {
			delete(before, at)
			out[i].End, out[i].Text = c.End, c.Text
		} else {
			i, out = len(out), append(out, c)
		}
		before[place{c.End, c.Settings}] = i
	}
	return build(out, d.blocks)
}

// goesOn reports whether a text is the one before with nothing but more of its last line.
func goesOn(before, text string) bool {
	before, text = plainText(before), plainText(text)
	return strings.HasPrefix(text, before) && strings.Count(text, "\n") == strings.Count(before, "\n")
}
