// Package field validates single values of a request: characters, lengths, ranges, URLs, languages. Each rule adds a
// message that names the field by its path, says what is allowed, and never repeats the value. A leaf of the control
// plane: pure, no resources, no I/O.
package field

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"millrace/internal/control/language"
	"millrace/internal/fault"
)

// Limits in characters (Unicode code points).
const (
	MaxPassthrough = 255
	MaxName        = 255
	MaxID          = 255
	MaxURL         = 8192
)

// Join appends name to a path.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// At appends an index to a path.
func At(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Text allows at most limit code points of valid UTF-8 without U+0000, and reports whether v is so.
func Text(l *fault.List, path, v string, limit int) bool {
	switch {
	case !utf8.ValidString(v):
		l.At(path, "must be valid UTF-8")
	case strings.ContainsRune(v, 0):
		l.At(path, "must not contain the character U+0000")
	case utf8.RuneCountInString(v) > limit:
		l.At(path, "may have at most %d characters", limit)
	default:
		return true
	}
	return false
}

// Name allows what Text does, but no control characters, nor the separators of lines and paragraphs: a name is one line
// wherever it is shown.
func Name(l *fault.List, path, v string, limit int) bool {
	if !Text(l, path, v, limit) {
		return false
	}
	if strings.ContainsFunc(v, func(r rune) bool { return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 }) {
		l.At(path, "must not contain line breaks or other control characters")
		return false
	}
	return true
}

// Passthrough checks free text of the caller's own.
func Passthrough(l *fault.List, path, v string) { Text(l, path, v, MaxPassthrough) }

// OneOf allows the given values.
func OneOf(l *fault.List, path, v string, allowed ...string) bool {
	if slices.Contains(allowed, v) {
		return true
	}
	l.At(path, "must be one of: %s", strings.Join(allowed, ", "))
	return false
}

// Count allows at most limit entries.
func Count(l *fault.List, path string, n, limit int) bool {
	if n <= limit {
		return true
	}
	l.At(path, "may have at most %d entries", limit)
	return false
}

// Between allows finite numbers from low to high, both included.
func Between(l *fault.List, path string, v, low, high float64) bool {
	if !math.IsNaN(v) && v >= low && v <= high {
		return true
	}
	l.At(path, "must be a number from %v to %v", low, high)
	return false
}

// WebURL allows absolute http and https URLs of at most MaxURL characters.
func WebURL(l *fault.List, path, v string) bool {
	if !Text(l, path, v, MaxURL) {
		return false
	}
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		l.At(path, "must be an absolute http or https URL")
		return false
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			l.At(path, "must have a port from 1 to 65535, or none")
			return false
		}
	}
	return true
}

// BareURL is a URL without what may be credentials: user, query and fragment. It is empty for what is no URL.
func BareURL(v string) string {
	u, err := url.Parse(v)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Opaque: u.Opaque, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// Language allows well-formed BCP 47 language tags.
func Language(l *fault.List, path, v string) bool {
	if !Text(l, path, v, MaxName) {
		return false
	}
	if _, err := language.Parse(v); err != nil {
		l.At(path, "%s", err)
		return false
	}
	return true
}

// Page checks which part of a list is asked for and fills in what is not given: page 1 of 25.
func Page(page, limit int) (int, int, error) {
	var l fault.List
	if page < 0 || page > 1_000_000 {
		l.At("page", "must be a whole number from 1 to 1000000")
	}
	if limit < 0 || limit > 100 {
		l.At("limit", "must be a whole number from 1 to 100")
	}
	if page == 0 {
		page = 1
	}
	if limit == 0 {
		limit = 25
	}
	return page, limit, l.Err()
}
