package worker

import (
	"strings"

	"millrace/internal/media/speech/wire"
)

// report tells what was recognised, with times in samples of the sound.
type report struct {
	tell func(wire.Result) error
	text func(word string) string // a word of the library as it is shown; empty: it is none

	base  int64 // sample of frame 0
	until int64 // sample up to which all was told
}

// say tells the words of segments, but for those that were told before: a word is one of them where its middle is
// before the end of what was told.
func (r *report) say(all []segment) error {
	var words []wire.Word
	for _, s := range all {
		if filler(s.word) {
			continue
		}
		text, _, _ := strings.Cut(s.word, "(") // a variant of how it is spoken
		if text = r.text(text); text == "" {
			continue
		}
		start, end := r.base+int64(s.first)*frameSamples, r.base+int64(s.last+1)*frameSamples
		if (start+end)/2 < r.until {
			continue
		}
		words = append(words, spread(text, start, end, s.confidence)...)
	}
	if len(words) == 0 {
		return nil
	}
	return r.emitUntil(max(r.until, words[len(words)-1].End), words)
}

// spread gives the words of a phrase, with its time by their lengths.
func spread(text string, start, end int64, confidence float32) []wire.Word {
	parts := strings.Fields(text)
	letters := 0
	for _, p := range parts {
		letters += len(p)
	}
	var words []wire.Word
	done := 0
	for _, p := range parts {
		from := start + (end-start)*int64(done)/int64(letters)
		done += len(p)
		words = append(words, wire.Word{
			Text:       p,
			Start:      from,
			End:        start + (end-start)*int64(done)/int64(letters),
			Confidence: confidence,
		})
	}
	return words
}

func (r *report) emitUntil(until int64, words []wire.Word) error {
	r.until = max(r.until, until)
	return r.tell(wire.Result{Words: words, Until: r.until})
}

// filler reports whether a segment is no word.
func filler(word string) bool {
	return strings.HasPrefix(word, "<") || strings.HasPrefix(word, "[") || strings.HasPrefix(word, "++")
}
