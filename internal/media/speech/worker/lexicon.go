package worker

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// lexicon is what is known of phrases: each is one token of the dictionary and of a language model of its own.
type lexicon struct {
	dictionary, model string // paths of files in memory; empty: there are no phrases
	phrases           map[string]string
}

const tokenMark = "phrase_" // no word of the dictionary begins so

// newLexicon writes the dictionary with the phrases, and their language model. A phrase of which no word can be
// pronounced is left out.
func newLexicon(dictionary string, phrases []string) (*lexicon, error) {
	l := &lexicon{phrases: map[string]string{}}
	if len(phrases) == 0 {
		return l, nil
	}
	known, err := os.ReadFile(dictionary) //nolint:gosec // the model's
	if err != nil {
		return nil, fmt.Errorf("read dictionary: %w", err)
	}
	say, err := newSpeller(known)
	if err != nil {
		return nil, err
	}
	out := bytes.NewBuffer(known)
	if n := len(known); n > 0 && known[n-1] != '\n' {
		out.WriteByte('\n')
	}
	var tokens []string
	for i, p := range phrases {
		sounds := say.phrase(p)
		if sounds == "" {
			continue
		}
		token := fmt.Sprintf("%s%d", tokenMark, i)
		l.phrases[token] = strings.Join(strings.Fields(p), " ")
		tokens = append(tokens, token)
		fmt.Fprintf(out, "%s %s\n", token, sounds)
	}
	if len(tokens) == 0 {
		return l, nil
	}
	if l.dictionary, err = inMemory("dictionary", out.Bytes()); err != nil {
		return nil, err
	}
	l.model, err = inMemory("phrases", arpa(tokens))
	return l, err
}

// text is how a token, or a word of the dictionary, is written.
func (l *lexicon) text(word string) string {
	if p, ok := l.phrases[word]; ok {
		return p
	}
	return shown(word)
}

// arpa is a language model in which all tokens are as likely.
func arpa(tokens []string) []byte {
	var b bytes.Buffer
	p := math.Log10(1 / float64(len(tokens)+1))
	fmt.Fprintf(&b, "\\data\\\nngram 1=%d\n\n\\1-grams:\n-99 <s>\n%.4f </s>\n", len(tokens)+2, p)
	for _, t := range tokens {
		fmt.Fprintf(&b, "%.4f %s\n", p, t)
	}
	b.WriteString("\n\\end\\\n")
	return b.Bytes()
}

// inMemory is the path of a file that lies in memory: the process may write no other. It stays for as long as the
// process.
func inMemory(name string, data []byte) (string, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("make file in memory: %w", err)
	}
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil {
			return "", fmt.Errorf("write file in memory: %w", err)
		}
		data = data[n:]
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), nil
}

// speller knows how words are spoken.
type speller struct {
	known map[string]string
	guess func(word string) string // of a word of small letters that the dictionary does not have; empty: nobody knows
}

func newSpeller(dictionary []byte) (*speller, error) {
	guess, err := loadGuess()
	if err != nil {
		return nil, err
	}
	s := &speller{known: map[string]string{}, guess: guess}
	for line := range bytes.Lines(dictionary) {
		word, sounds, ok := strings.Cut(string(bytes.TrimSpace(line)), " ")
		if ok && !strings.HasSuffix(word, ")") {
			s.known[word] = sounds
		}
	}
	return s, nil
}

// phrase is how a phrase is spoken; empty: nobody knows.
func (s *speller) phrase(p string) string {
	var all []string
	for _, w := range splitWords(p) {
		if sounds := s.word(w); sounds != "" {
			all = append(all, sounds)
		}
	}
	return strings.Join(all, " ")
}

// word is how a word of letters, or of digits, is spoken.
func (s *speller) word(w string) string {
	low := strings.ToLower(w)
	if sounds, ok := s.known[low]; ok {
		return sounds
	}
	if spelledOut(w) {
		var all []string
		for _, r := range low {
			all = append(all, s.known[letterName(r)])
		}
		return strings.Join(all, " ")
	}
	return s.guess(low)
}

// letterName is the dictionary's word for a letter or a digit.
func letterName(r rune) string {
	if r >= '0' && r <= '9' {
		return [...]string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}[r-'0']
	}
	return string(r) + "."
}

// spelledOut reports whether a word is spoken letter by letter: digits, one without vowels, one of capitals.
func spelledOut(w string) bool {
	if w[0] >= '0' && w[0] <= '9' {
		return true
	}
	const short = 5
	return !strings.ContainsAny(strings.ToLower(w), "aeiouy") ||
		len(w) > 1 && len(w) <= short && w == strings.ToUpper(w)
}

// splitWords gives the words of a phrase in letters from a to z with what is between them, and digits one by one;
// accents go.
func splitWords(p string) []string {
	plain, _, err := transform.String(transform.Chain(norm.NFD, runes.Remove(runes.In(unicode.Mn)), norm.NFC), p)
	if err != nil {
		plain = p
	}
	var words []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			words = append(words, strings.Trim(word.String(), "'"))
			word.Reset()
		}
	}
	for _, r := range plain {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '\'':
			word.WriteRune(r)
		case r >= '0' && r <= '9':
			flush()
			words = append(words, string(r))
		default:
			flush()
			if named, ok := map[rune]string{'+': "plus", '&': "and", '@': "at", '%': "percent", '#': "hash"}[r]; ok {
				words = append(words, named)
			}
		}
	}
	flush()
	kept := words[:0]
	for _, w := range words {
		if w != "" {
			kept = append(kept, w)
		}
	}
	return kept
}
