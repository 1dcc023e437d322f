package captions

import (
	"html"
	"slices"
	"strings"
)

// Escape makes cue text of plain text: nothing in it is markup. Its line breaks stay.
func Escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// Transcript is what is said, without times and markup: a line for each stretch without a pause. What a cue repeats of
// the one before, as captions do that roll up, is there once.
func (d Document) Transcript() []byte {
	var out []byte
	var before []string // lines of the cue before
	for i, c := range d.cues {
		lines := plainLines(c.Text)
		fresh := lines
		if i > 0 && c.Start <= d.cues[i-1].End {
			fresh = lines[rolled(before, lines):]
		}
		before = lines
		text := strings.Join(fresh, " ")
		if text == "" {
			continue
		}
		if len(out) > 0 {
			sep := byte(' ')
			if c.Start-d.cues[i-1].End > transcriptPause {
				sep = '\n'
			}
			out = append(out, sep)
		}
		out = append(out, text...)
	}
	if len(out) > 0 {
		out = append(out, '\n')
	}
	return out
}

// rolled is how many of the first lines of a cue are the last ones of the cue before, which has rolled up. Both being
// the same is none of that: something is said again.
func rolled(before, lines []string) int {
	for n := min(len(before), len(lines)); n > 0; n-- {
		if n < max(len(before), len(lines)) && slices.Equal(before[len(before)-n:], lines[:n]) {
			return n
		}
	}
	return 0
}

// plainLines are the lines of a cue without tags, and without spaces that show nothing.
func plainLines(text string) (out []string) {
	for line := range strings.Lines(plainText(text)) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// plainText is cue text without its tags.
func plainText(text string) string {
	var b strings.Builder
	for text != "" {
		before, rest, tag := strings.Cut(text, "<")
		b.WriteString(before)
		if !tag {
			break
		}
		if _, rest, tag = strings.Cut(rest, ">"); !tag {
			break
		}
		text = rest
	}
	return html.UnescapeString(b.String())
}
