package remote

import (
	"strings"
	"unicode"

	"millrace/internal/media/speech"
)

// isDescription reports whether a segment is of a sound that is no speech, as whisper describes it: [BLANK_AUDIO],
// (upbeat music), *laughs*, or nothing but signs, such as notes. What is sung between notes is said.
func isDescription(text string) bool {
	text = strings.TrimSpace(text)
	for _, marks := range []struct{ begin, end string }{{"[", "]"}, {"(", ")"}, {"*", "*"}} {
		inner, begins := strings.CutPrefix(text, marks.begin)
		inner, ends := strings.CutSuffix(inner, marks.end)
		if begins && ends && !strings.ContainsAny(inner, marks.begin+marks.end) {
			return true
		}
	}
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsNumber(r)
	})
}

// withoutDescriptions leaves out what stands in square brackets among words: whisper writes nothing there that was
// said. Round ones may be a speaker's.
func withoutDescriptions(words []speech.Word) []speech.Word {
	kept := words[:0]
	for i := 0; i < len(words); i++ {
		end := i
		if strings.HasPrefix(words[i].Text, "[") {
			for end < len(words) && !strings.ContainsRune(words[end].Text, ']') {
				end++
			}
			if end < len(words) {
				i = end
				continue
			}
		}
		kept = append(kept, words[i])
	}
	return kept
}
