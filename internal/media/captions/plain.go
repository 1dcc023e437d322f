package captions

import (
	"html"
	"strings"
)

// Escape makes cue text of plain text: nothing in it is markup. Its line breaks stay.
func Escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// Transcript is what is said, without times and markup: a line for each stretch without a pause.
func (d Document) Transcript() []byte {
	var out []byte
	for i, c := range d.cues {
		text := strings.Join(strings.Fields(plainText(c.Text)), " ")
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
