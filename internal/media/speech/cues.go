package speech

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"millrace/internal/media/captions"
)

// The form of cues.
const (
	lineLength  = 42 // characters
	lines       = 2
	shortestCue = time.Second
	longestCue  = 7 * time.Second
	readingRate = 20                     // characters a second
	pauseLength = 600 * time.Millisecond // at which a cue ends
	cueGap      = 80 * time.Millisecond  // between two cues
	linger      = time.Second            // a cue stays longer than it is spoken, where it has the time
)

// Cue is a stretch of words as it is shown: plain text of one or two lines.
type Cue struct {
	Start, End time.Duration
	Text       string
}

// Caption is the cue as files and text renditions have it.
func (c Cue) Caption() captions.Cue {
	return captions.Cue{Start: c.Start, End: c.End, Text: captions.Escape(c.Text)}
}

// Cues makes cues of words. Words come by Add, in order; a cue comes out once no later word can change it. The zero
// value is ready.
type Cues struct {
	// Live has cues come out once they are whole, and not wait for the time at which the next words are said. A cue may
	// then end up to a second later than the next one begins. The words that are in none yet are in the Draft.
	Live bool

	words []Word // not in a cue yet
	last  *Cue   // made, but for its end: the next one bounds it
	until time.Duration
}

// Add takes words and the time up to which all words are known, and gives the cues that are whole by that.
func (c *Cues) Add(words []Word, until time.Duration) []Cue {
	var out []Cue
	for _, w := range words {
		if w.Text == "" {
			continue
		}
		if n := len(c.words); n > 0 && w.Start < c.words[n-1].End {
			w.Start = c.words[n-1].End
		}
		w.End = max(w.End, w.Start+10*time.Millisecond)
		c.words = append(c.words, w)
	}
	c.until = max(c.until, until)
	for {
		n := c.next()
		if n == 0 {
			break
		}
		out = append(out, c.make(n)...)
	}
	if c.Live && c.last != nil {
		out, c.last = append(out, *c.last), nil
	}
	// The last cue's end is known when all is that could be in its way.
	if c.last != nil && len(c.words) == 0 && c.until >= c.last.End {
		out, c.last = append(out, *c.last), nil
	}
	return out
}

// Draft is a cue of the words that are in none yet, as it would be if no others came; ok is false when there are none.
func (c *Cues) Draft() (cue Cue, ok bool) {
	if len(c.words) == 0 {
		return Cue{}, false
	}
	return c.cue(c.words), true
}

// TakeDraft says that the draft has become a cue, since the last Add: no other has its words.
func (c *Cues) TakeDraft() { c.words = nil }

// EndSentence has a sentence end with the word that came last, where it is in no cue yet.
func (c *Cues) EndSentence() {
	if n := len(c.words); n > 0 {
		c.words[n-1].Text = stopped(c.words[n-1].Text)
	}
}

// Known is the time before which no cue will begin any more but the draft, where all words are known up to a time.
func (c *Cues) Known(until time.Duration) time.Duration {
	switch {
	case c.Live:
		return until
	case c.last != nil:
		return min(until, c.last.Start)
	case len(c.words) > 0:
		return min(until, c.words[0].Start)
	}
	return until
}

// Flush gives what is left: what was said has come to an end.
func (c *Cues) Flush() []Cue {
	var out []Cue
	for len(c.words) > 0 {
		out = append(out, c.make(fit(c.words))...)
	}
	if c.last != nil {
		out, c.last = append(out, *c.last), nil
	}
	return out
}

// next is how many words the next cue has; 0: that is not known yet.
func (c *Cues) next() int {
	if len(c.words) == 0 {
		return 0
	}
	n := fit(c.words)
	if n < len(c.words) {
		return n
	}
	if ends(c.words[n-1].Text) && len(text(c.words)) > lineLength || c.until >= c.words[n-1].End+pauseLength {
		return n
	}
	return 0
}

// fit is how many words from the first on fit into one cue, ended where it is best.
func fit(words []Word) int {
	best, bestScore := 1, -1.0
	for n := 1; n <= len(words); n++ {
		if n > 1 && (words[n-1].End-words[0].Start > longestCue || !layout(words[:n])) {
			break
		}
		if n == len(words) || words[n].Start-words[n-1].End >= pauseLength {
			return n
		}
		if s := score(words, n); s >= bestScore {
			best, bestScore = n, s
		}
	}
	return best
}

// score says how good it is to end a cue behind n words: a full one is good, and so is one that ends with what was
// said.
func score(words []Word, n int) float64 {
	s := float64(len(text(words[:n]))) / (lines * lineLength)
	switch gap := words[n].Start - words[n-1].End; {
	case ends(words[n-1].Text):
		s += 0.5
	case strings.HasSuffix(words[n-1].Text, ","), gap > 150*time.Millisecond:
		s += 0.3
	case leads(words[n].Text):
		s += 0.2
	}
	if leads(words[n-1].Text) {
		s -= 0.3
	}
	return s
}

// ends reports whether a sentence ends with a word.
func ends(word string) bool {
	r, _ := utf8.DecodeLastRuneInString(word)
	return strings.ContainsRune(".?!…", r)
}

// leads reports whether a word belongs to what follows: a phrase begins with it.
func leads(word string) bool {
	switch strings.ToLower(strings.TrimFunc(word, unicode.IsPunct)) {
	case "a", "an", "the", "and", "or", "but", "of", "to", "in", "on", "at", "by", "for", "from", "with", "that",
		"which", "who", "because", "when", "while",
		"if", "as", "my", "your", "his", "her", "its", "our", "their", "und", "oder", "der", "die", "das", "ein",
		"eine", "et", "ou", "le", "la", "les", "un", "une",
		"de", "du", "y", "o", "el", "los", "las", "una", "e", "il", "lo", "i", "gli":
		return true
	}
	return false
}

func text(words []Word) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = w.Text
	}
	return strings.Join(parts, " ")
}

// layout reports whether words fit into the lines of a cue.
func layout(words []Word) bool {
	whole := text(words)
	return utf8.RuneCountInString(whole) <= lineLength || broken(whole) != ""
}

// broken is a text in two lines, broken in front of a phrase and as evenly as can be; empty: it does not fit.
func broken(whole string) string {
	best, bestScore := "", -1.0
	for i, r := range whole {
		if r != ' ' {
			continue
		}
		first, second := utf8.RuneCountInString(whole[:i]), utf8.RuneCountInString(whole[i+1:])
		if first > lineLength || second > lineLength {
			continue
		}
		s := 2 - float64(max(first-second, second-first))/lineLength
		before := whole[strings.LastIndexByte(whole[:i], ' ')+1 : i]
		after, _, _ := strings.Cut(whole[i+1:], " ")
		if ends(before) || strings.HasSuffix(before, ",") {
			s += 0.5
		}
		if leads(after) {
			s += 0.3
		}
		if leads(before) {
			s -= 0.3
		}
		if s > bestScore {
			best, bestScore = whole[:i]+"\n"+whole[i+1:], s
		}
	}
	return best
}

// make takes the first n words into a cue, and gives the one before it, whose end is known by that.
func (c *Cues) make(n int) (out []Cue) {
	cue := c.cue(c.words[:n])
	c.words = c.words[n:]
	if c.last != nil {
		if c.last.End > cue.Start-cueGap {
			c.last.End = max(min(c.last.End, cue.Start-cueGap), c.last.Start+cueGap)
		}
		if c.last.End > cue.Start { // shorter than the gap
			c.last.End = cue.Start
		}
		out = append(out, *c.last)
	}
	c.last = &cue
	return out
}

// cue is one of words, for as long as it takes to read them.
func (c *Cues) cue(words []Word) Cue {
	cue := Cue{Start: words[0].Start, End: words[len(words)-1].End, Text: text(words)}
	if utf8.RuneCountInString(cue.Text) > lineLength {
		if b := broken(cue.Text); b != "" {
			cue.Text = b
		}
	}
	read := time.Duration(utf8.RuneCountInString(cue.Text)) * time.Second / readingRate
	if c.Live { // longer, and the cues of who speaks fast would be later and later
		read = min(read, cue.End-cue.Start+linger)
	}
	cue.End = min(max(cue.End+linger/2, cue.Start+shortestCue, cue.Start+read), max(cue.Start+longestCue, cue.End))
	return cue
}
