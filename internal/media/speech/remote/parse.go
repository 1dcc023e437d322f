package remote

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/media/speech"
)

// number takes numbers that are written as strings, as vLLM has them.
type number float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0 // null, too
	}
	*n = number(v)
	return nil
}

type responseWord struct {
	Word        string `json:"word"`
	Start       number `json:"start"`
	End         number `json:"end"`
	Probability number `json:"probability"`
}

type response struct {
	Text     string         `json:"text"`
	Language string         `json:"language"`
	Duration number         `json:"duration"`
	Words    []responseWord `json:"words"`
	Segments []struct {
		Text     string         `json:"text"`
		Start    number         `json:"start"`
		End      number         `json:"end"`
		LogProb  number         `json:"avg_logprob"`
		NoSpeech number         `json:"no_speech_prob"`
		Words    []responseWord `json:"words"`
	} `json:"segments"`
	Probability number `json:"detected_language_probability"`
}

// nanoseconds is from where on a time can't be seconds: LocalAI gives whole nanoseconds.
const nanoseconds = 1e6

// longest is more than any sound lasts, in nanoseconds.
const longest = 1e15

func (n number) time() time.Duration {
	if n > nanoseconds {
		return time.Duration(min(n, longest))
	}
	return time.Duration(float64(n) * float64(time.Second))
}

// parse reads verbose_json of any of the servers. Times lie within the length of the sound.
func parse(data []byte, length time.Duration) (speech.Result, error) {
	var a response
	if !isJSON(data) || json.Unmarshal(data, &a) != nil {
		return speech.Result{},
			errors.New("the server's response is not what /v1/audio/transcriptions has: is the URL right?")
	}
	r := speech.Result{
		Until:      length,
		Language:   languageCode(a.Language),
		Confidence: min(max(float64(a.Probability), 0), 1),
	}
	r.Words = speech.Within(a.words(r.Language, length), length)
	return r, nil
}

// words are those that were said, in order.
func (r *response) words(language string, length time.Duration) []speech.Word {
	spaces := !slices.Contains(withoutSpaces(), language)
	whole := joined(r.Words, spaces)
	var tokens []responseWord // of segments that follow on one another
	var words []speech.Word
	for _, s := range r.Segments {
		if s.NoSpeech > 0.6 && s.LogProb < -1 || isDescription(s.Text) { // music, or nothing
			whole = outside(whole, s.Start.time(), s.End.time())
			continue
		}
		if len(s.Words) > 0 {
			tokens = append(tokens, s.Words...)
			continue
		}
		words = append(append(words, joined(tokens, spaces)...), speech.Spread(s.Text, s.Start.time(), s.End.time())...)
		tokens = nil
	}
	words = append(words, joined(tokens, spaces)...)
	switch {
	case len(r.Words) > 0:
		return withoutDescriptions(whole)
	case len(r.Segments) == 0 && !isDescription(r.Text):
		words = speech.Spread(r.Text, 0, length)
	}
	return withoutDescriptions(words)
}

// withoutSpaces are languages that are written without spaces between words.
func withoutSpaces() []string { return []string{"zh", "yue", "ja", "th", "lo", "my", "km", "bo"} }

// joined makes words of what may be tokens: one that does not begin with a space goes on with the one before, over the
// end of a segment, too, as whisper.cpp's server breaks segments within words. Words of servers that give whole words
// begin with none either, so that counts only where some do.
func joined(all []responseWord, spaces bool) []speech.Word {
	tokens := false
	for _, w := range all {
		tokens = tokens || spaces && strings.HasPrefix(w.Word, " ")
	}
	var out []speech.Word
	for _, w := range all {
		text := strings.TrimSpace(w.Word)
		if text == "" || strings.HasPrefix(text, "[_") { // whisper.cpp's marks of time
			continue
		}
		if n := len(out); tokens && n > 0 && !strings.HasPrefix(w.Word, " ") {
			out[n-1].Text += text
			out[n-1].End = w.End.time()
			continue
		}
		out = append(out, speech.Word{
			Text:       text,
			Start:      w.Start.time(),
			End:        w.End.time(),
			Confidence: float32(w.Probability),
		})
	}
	return out
}

// outside leaves words out that lie within a stretch.
func outside(words []speech.Word, from, to time.Duration) []speech.Word {
	kept := words[:0]
	for _, w := range words {
		if mid := (w.Start + w.End) / 2; mid < from || mid >= to {
			kept = append(kept, w)
		}
	}
	return kept
}
