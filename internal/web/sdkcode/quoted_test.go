package sdkcode

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzQuoted: a text as a string of JSON is that text again, on one line, and has nothing in it that is not seen.
func FuzzQuoted(f *testing.F) {
	for _, text := range []string{"", "it's", `"\`, "</script>", "a\x00\n\u2028", "\u202eabc", "\U0001f600\U000e0041"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := quoted(text)
		var again string
		if err := json.Unmarshal([]byte(out), &again); err != nil || utf8.ValidString(text) && again != text {
			t.Errorf("%q is %s, and %q again: %v", text, out, again, err)
		}
		if strings.ContainsFunc(out, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q is %q", text, out)
		}
	})
}
