package speech

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The pauses between two words that end a sentence.
const (
	sentencePause = 400 * time.Millisecond  // where the next word is one that sentences begin with
	longPause     = time.Second             // unless the word before leads to another
	endlessPause  = 2500 * time.Millisecond // in any case
	// leastWords is how many words a sentence has that a short pause ends.
	leastWords = 3
)

// Sentences gives English words capitals and full stops where pauses and words tell that a sentence begins or ends. It
// is for engines that give none. It never changes when a word is said, nor one that is written with a capital
// somewhere.
type Sentences struct {
	begun  bool
	before Word // the last one that was given
	words  int  // of the sentence, so far
	ended  bool // that of the word before those that were added last, as is known by them
}

// NewSentences returns that of an engine; nil, which changes nothing, where the engine punctuates or the language, as
// BCP 47 has it, is another.
func NewSentences(e Engine, language string) *Sentences {
	base, _, _ := strings.Cut(language, "-")
	if can, err := e.Abilities(); err != nil || can.Punctuation || !strings.EqualFold(base, "en") {
		return nil
	}
	return &Sentences{}
}

// Add takes the next words and the time up to which all words are known. It gives them in the form of sentences. The
// last one gets its full stop only where the pause behind it is known to be long.
func (s *Sentences) Add(words []Word, until time.Duration) []Word {
	if s == nil {
		return words
	}
	out := slices.Clone(words)
	s.ended = false
	for i, said := range words {
		w := &out[i]
		if !s.begun || s.ends(w.Text, w.Start-s.before.End) {
			s.ended = s.ended || i == 0 && s.begun
			s.begun, s.words = true, 0
			w.Text = capitalised(w.Text)
		}
		s.before = said
		s.words++
		var ended bool
		if i+1 < len(words) {
			ended = s.ends(words[i+1].Text, words[i+1].Start-w.End)
		} else {
			ended = s.ends("", until-w.End)
		}
		if ended {
			w.Text = stopped(w.Text)
		}
	}
	return out
}

// Ended reports whether the words that were added last begin a sentence, so that the one before them has ended, which
// was not known when it was added.
func (s *Sentences) Ended() bool { return s != nil && s.ended }

// stopped is a word with which a sentence ends.
func stopped(word string) string {
	if ends(word) {
		return word
	}
	return strings.TrimRight(word, ",") + "."
}

// ends reports whether a sentence ends between the word before and the next one.
func (s *Sentences) ends(next string, pause time.Duration) bool {
	switch before := s.before.Text; {
	case ends(before) && pause >= sentencePause, pause >= endlessPause:
		return true
	case leads(before) || awaits(before):
		return false
	case pause >= longPause:
		return true
	default:
		return pause >= sentencePause && s.words >= leastWords && opens(next)
	}
}

// capitalised is a word with a capital, unless it has one somewhere: then it is written as it is to be.
func capitalised(word string) string {
	first, n := utf8.DecodeRuneInString(word)
	if strings.ContainsFunc(word, unicode.IsUpper) {
		return word
	}
	return string(unicode.ToUpper(first)) + word[n:]
}

// opens reports whether sentences often begin with a word, and parts of them seldom.
func opens(word string) bool {
	base, _, short := strings.Cut(strings.ToLower(word), "'")
	switch base {
	case "i", "we", "you", "he", "she", "it", "they", "this", "these", "there", "now", "today":
		return true
	case "that", "let", "here", "what", "who": // that's, let's
		return short
	}
	return false
}

// awaits reports whether a word is hardly ever the last one of a sentence: something is to come.
func awaits(word string) bool {
	switch strings.ToLower(strings.TrimFunc(word, unicode.IsPunct)) {
	case "is", "are", "was", "were", "am", "be", "been", "has", "have", "had", "do", "does", "did",
		"will", "would", "can", "could", "should", "may", "might", "must", "not", "very", "than", "so",
		"i", "we", "he", "she", "they", "i'm", "we're", "they're", "you're", "it's", "he's", "she's",
		"i'll", "we'll", "i've", "we've", "think", "thinks", "thought", "believe", "say", "says", "said",
		"where", "how", "why", "what", "whether", "into", "about", "between", "these", "those", "this", "every":
		return true
	}
	return false
}
