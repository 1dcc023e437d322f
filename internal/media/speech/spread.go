package speech

import (
	"strings"
	"time"
)

// Spread gives the words of a text of which only the whole's time is known times of their own, by their lengths.
func Spread(text string, from, to time.Duration) []Word {
	parts := strings.Fields(text)
	letters := 0
	for _, p := range parts {
		letters += len(p)
	}
	out := make([]Word, 0, len(parts))
	done := 0
	for _, p := range parts {
		start := from + (to-from)*time.Duration(done)/time.Duration(letters)
		done += len(p)
		out = append(out, Word{Text: p, Start: start, End: from + (to-from)*time.Duration(done)/time.Duration(letters)})
	}
	return out
}

// Within moves the times of words so that all lie in sound of a length, in order. It changes the words that it is
// given.
func Within(words []Word, length time.Duration) []Word {
	last := time.Duration(0)
	for i := range words {
		w := &words[i]
		w.Start = min(max(w.Start, last), length)
		w.End = min(max(w.End, w.Start), length)
		last = w.Start
	}
	return words
}
