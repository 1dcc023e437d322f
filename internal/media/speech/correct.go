package speech

import (
	"strings"
	"time"
	"unicode"
)

// Corrector puts the phrases of a vocabulary in the place of words that sound alike. It is for engines that take no
// phrases: they hear "for vex" where somebody says Zorvex.
type Corrector struct {
	phrases map[int][]phrase // by the length of their sounds
	longest int              // words that are looked at together
}

type phrase struct {
	text   string
	sounds string
}

// leastSounds is how long a phrase's sounds must be so that others than itself are taken for it, and oneIn is of how
// many sounds one may differ.
const leastSounds, oneIn = 5, 5

// NewCorrector returns the one of an engine that has phrases; nil, which changes nothing, where the engine is told of
// them itself.
func NewCorrector(e Engine, phrases []string) *Corrector {
	if can, err := e.Abilities(); err != nil || can.Bias != NoBias || len(phrases) == 0 {
		return nil
	}
	c := &Corrector{phrases: map[int][]phrase{}}
	for _, p := range phrases {
		s := sounds(p)
		if n := len(s); n > 0 {
			c.phrases[n] = append(c.phrases[n], phrase{p, s})
			c.longest = max(c.longest, len(strings.Fields(p))+2)
		}
	}
	return c
}

// Correct gives words with the phrases in them.
func (c *Corrector) Correct(words []Word) []Word {
	if c == nil {
		return words
	}
	var out []Word
	for i := 0; i < len(words); {
		p, n, share := c.find(words[i:])
		for j := i + 1; j < i+n; j++ { // without the words in front it may be nearer
			if _, _, nearer := c.find(words[j:]); nearer < share {
				n = 0
			}
		}
		if n == 0 {
			out = append(out, words[i])
			i++
			continue
		}
		out = append(out, p.instead(words[i:i+n])...)
		i += n
	}
	return out
}

// find is the phrase that the first words are, how many they are, and the share of sounds that differ; 0 words: none.
func (c *Corrector) find(words []Word) (found phrase, most int, least float64) {
	least = 2 // more than any share
	var all strings.Builder
	for n := 1; n <= min(c.longest, len(words)); n++ {
		all.WriteString(letters(words[n-1].Text))
		raw := all.String()
		said := sounds(raw)
		reach := len(said) / oneIn
		for length := max(1, len(said)-reach); length <= len(said)+reach; length++ {
			for _, p := range c.phrases[length] {
				if share := p.differs(said, raw); share < least {
					found, most, least = p, n, share
				}
			}
		}
	}
	return found, most, least
}

// differs is the share of a phrase's sounds that differ from what was said; 2: it is another.
func (p phrase) differs(said, raw string) float64 {
	if raw == letters(p.text) {
		return -1
	}
	if d := distance(p.sounds, said); len(p.sounds) >= leastSounds && d*oneIn <= len(p.sounds) {
		return float64(d) / float64(len(p.sounds))
	}
	return 2
}

// instead is the phrase in the place of words, with their time and the punctuation behind them.
func (p phrase) instead(words []Word) []Word {
	last := words[len(words)-1]
	behind := last.Text[len(strings.TrimRightFunc(last.Text, unicode.IsPunct)):]
	parts := strings.Fields(p.text)
	from, long := words[0].Start, last.End-words[0].Start
	all, done := len(strings.Join(parts, "")), 0
	out := make([]Word, 0, len(parts))
	for _, part := range parts {
		w := Word{Text: part, Start: from + long*time.Duration(done)/time.Duration(all), Confidence: last.Confidence}
		done += len(part)
		w.End = from + long*time.Duration(done)/time.Duration(all)
		out = append(out, w)
	}
	out[len(out)-1].Text += behind
	return out
}

// letters are the letters and digits of a text, small.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// alike has letters that sound alike be the same one.
var alike = strings.NewReplacer( //nolint:gochecknoglobals // a table
	"ph", "f", "ck", "k", "sch", "s", "sh", "s", "x", "ks", "qu", "kw", "c", "k", "q", "k", "z", "s", "v", "f", "w",
	"f", "d", "t", "b", "p",
	"j", "g", "e", "a", "i", "a", "o", "a", "u", "a", "y", "a", "h", "")

// sounds is roughly how a text sounds: vowels are all the same, and nothing comes twice in a row.
func sounds(text string) string {
	var b strings.Builder
	before := rune(0)
	for _, r := range alike.Replace(letters(text)) {
		if r != before {
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// distance is how many bytes have to be changed, added or left out so that a becomes b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
