package shell

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"millrace/internal/fault"
)

// Sentence is what a person is told of an error.
func Sentence(err error) string {
	m := fault.Messages(err)
	if len(m) == 0 {
		return "Something went wrong. See the service's log for details."
	}
	return Capital(strings.Join(m, ". "))
}

// gone reports whether a request ended because its client left.
func gone(r *http.Request, err error) bool {
	return r.Context().Err() != nil && errors.Is(err, r.Context().Err())
}

// clock is how long something has gone on: h:mm:ss.
func clock(d time.Duration) string {
	sec := max(0, int(d.Seconds()))
	two := func(n int) string {
		if n < 10 {
			return "0" + strconv.Itoa(n)
		}
		return strconv.Itoa(n)
	}
	return strconv.Itoa(sec/3600) + ":" + two(sec/60%60) + ":" + two(sec%60)
}

// UTC is a time as it is shown without a script.
func UTC(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04") + " UTC" }

// Short is an ID without its middle.
func Short[T ~string](v T) string {
	if len(v) <= 14 {
		return string(v)
	}
	return string(v[:6]) + "…" + string(v[len(v)-4:])
}

// direction are the characters that turn round the text behind them, or end that (Unicode Standard Annex 9).
var direction = strings.NewReplacer( //nolint:gochecknoglobals // a table
	"\u202a", "", "\u202b", "", "\u202c", "", "\u202d", "", "\u202e", "",
	"\u2066", "", "\u2067", "", "\u2068", "", "\u2069", "",
)

// PlainName is a name as pages show it: it can't turn itself round to look like another one. Scripts that are written
// from right to left need none of what is left out.
func PlainName(name string) string { return strings.TrimSpace(direction.Replace(name)) }

// Capital is a text as the beginning of a sentence.
func Capital(text string) string {
	if word, _, _ := strings.Cut(text, " "); strings.Contains(word, "://") {
		return text // an address is as it is
	}
	first, n := utf8.DecodeRuneInString(text)
	if n == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + text[n:]
}

// AtMost is a number as text, which says so when there are more than most; 0 is empty.
func AtMost(n, most int) string {
	switch {
	case n == 0:
		return ""
	case n > most:
		return strconv.Itoa(most) + "+"
	}
	return strconv.Itoa(n)
}
