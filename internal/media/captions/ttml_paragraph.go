package captions

import (
	"slices"
	"strings"
	"time"
)

// maxTTMLStretches is in how many stretches of time a paragraph may show different parts of its text.
const maxTTMLStretches = 200

// piece is text of a paragraph with the times of the element that it is in; end 0: none.
type piece struct {
	begin, end time.Duration
	text       string
}

// paragraph is the text of a p element. Its spans may have times of their own, within its.
type paragraph struct {
	pieces []piece
	size   int // of all text, in bytes
}

// add adds text of an element.
func (p *paragraph) add(e element, text string) {
	p.size += len(text)
	if n := len(p.pieces); n > 0 && p.pieces[n-1].begin == e.begin && p.pieces[n-1].end == e.end {
		p.pieces[n-1].text += text
		return
	}
	p.pieces = append(p.pieces, piece{e.begin, e.end, text})
}

// cues are the paragraph as it is shown, a cue for each stretch of time in which the same is, without settings. A
// paragraph that can't be shown is one cue, from which the builder sees why.
func (p *paragraph) cues(e element) (out []rawCue) {
	if !slices.ContainsFunc(p.pieces, func(x piece) bool { return x.begin != e.begin || x.end != e.end }) {
		return []rawCue{{start: e.begin, end: e.end, text: trimmed(p.pieces, func(piece) bool { return true })}}
	}
	edges := p.edges()
	if len(edges) == 0 {
		return []rawCue{{}}
	}
	tooLong := []rawCue{{end: 1, text: strings.Repeat(" ", MaxCueText+1)}}
	if len(edges) > maxTTMLStretches {
		return tooLong
	}
	size := 0
	for i := range len(edges) - 1 {
		from, to := edges[i], edges[i+1]
		text := trimmed(p.pieces, func(x piece) bool { return x.begin <= from && (x.end == 0 || x.end >= to) })
		if size += len(text); size > MaxCueText {
			return tooLong
		}
		switch n := len(out); {
		case strings.TrimSpace(text) == "":
		case n > 0 && out[n-1].text == text && out[n-1].end == from:
			out[n-1].end = to
		default:
			out = append(out, rawCue{start: from, end: to, text: text})
		}
	}
	return out
}

// edges are the times at which what is shown may change.
func (p *paragraph) edges() (out []time.Duration) {
	for _, x := range p.pieces {
		if x.end > x.begin && strings.TrimSpace(x.text) != "" {
			out = append(out, x.begin, x.end)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// trimmed is the text of the pieces that are shown, without white space around its lines and without lines of which no
// piece is shown.
func trimmed(pieces []piece, shown func(piece) bool) string {
	var b strings.Builder
	for _, x := range pieces {
		if shown(x) {
			b.WriteString(x.text)
		}
	}
	var lines []string
	for line := range strings.SplitSeq(b.String(), "\n") {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
