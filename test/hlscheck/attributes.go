package hlscheck

import (
	"regexp"
	"strconv"
	"strings"
)

// report applies a rule to the playlist being read.
type report func(rule string, ok bool, format string, args ...any)

// attributes is a parsed attribute list (4.2): values without their quotes; quoted says which had them.
type attributes struct {
	values map[string]string
	quoted map[string]bool
}

var (
	attributeName = regexp.MustCompile(`^[A-Z0-9-]+$`)
	decimalInt    = regexp.MustCompile(`^[0-9]{1,20}$`)
	decimalFloat  = regexp.MustCompile(`^[0-9]+(\.[0-9]*)?$`)
	resolution    = regexp.MustCompile(`^[0-9]+x[0-9]+$`)
)

// attributeTypes says which type each attribute that we know has: q quoted string, i decimal integer, f decimal float,
// b YES or NO, r resolution, e enumerated.
func attributeTypes() map[string]byte {
	return map[string]byte{
		"URI": 'q', "BYTERANGE": 'q', "CODECS": 'q', "AUDIO": 'q', "VIDEO": 'q', "SUBTITLES": 'q', "GROUP-ID": 'q',
		"NAME": 'q', "LANGUAGE": 'q',
		"ASSOC-LANGUAGE": 'q', "CHARACTERISTICS": 'q', "CHANNELS": 'q', "INSTREAM-ID": 'q', "STABLE-RENDITION-ID": 'q',
		"STABLE-VARIANT-ID":   'q',
		"SUPPLEMENTAL-CODECS": 'q', "DATA-ID": 'q', "VALUE": 'q', "KEYFORMAT": 'q', "KEYFORMATVERSIONS": 'q',
		"BANDWIDTH": 'i', "AVERAGE-BANDWIDTH": 'i', "SKIPPED-SEGMENTS": 'i', "LAST-MSN": 'i', "LAST-PART": 'i',
		"BYTERANGE-START": 'i', "BYTERANGE-LENGTH": 'i',
		"FRAME-RATE": 'f', "DURATION": 'f', "PART-TARGET": 'f', "CAN-SKIP-UNTIL": 'f', "HOLD-BACK": 'f',
		"PART-HOLD-BACK": 'f', "SCORE": 'f',
		"DEFAULT": 'b', "AUTOSELECT": 'b', "FORCED": 'b', "INDEPENDENT": 'b', "GAP": 'b', "CAN-BLOCK-RELOAD": 'b',
		"CAN-SKIP-DATERANGES": 'b', "PRECISE": 'b',
		"RESOLUTION": 'r', "LAYOUT": 'r', "TYPE": 'e', "METHOD": 'e', "VIDEO-RANGE": 'e', "FORMAT": 'e',
	}
}

func typed(kind byte, value string, quoted bool) bool {
	switch kind {
	case 'q':
		return quoted
	case 'i':
		return !quoted && decimalInt.MatchString(value)
	case 'f':
		return !quoted && decimalFloat.MatchString(value)
	case 'b':
		return !quoted && (value == "YES" || value == "NO")
	case 'r':
		return !quoted && resolution.MatchString(value)
	default:
		return !quoted && value != "" && !strings.ContainsAny(value, "\", \t")
	}
}

// parseAttributes reads a list as far as it can and reports what is wrong with it.
func parseAttributes(tag, text string, say report) attributes {
	a := attributes{values: map[string]string{}, quoted: map[string]bool{}}
	types := attributeTypes()
	for rest := text; rest != ""; {
		name, after, ok := strings.Cut(rest, "=")
		if !ok || !attributeName.MatchString(name) {
			say("attributes", false, "%s: malformed at %q", tag, rest)
			return a
		}
		var value string
		quoted := strings.HasPrefix(after, `"`)
		if quoted {
			if value, rest, ok = strings.Cut(after[1:], `"`); !ok {
				say("attributes", false, "%s: %s has no closing quote", tag, name)
				return a
			}
		} else {
			i := strings.IndexByte(after, ',')
			if i < 0 {
				i = len(after)
			}
			value, rest = after[:i], after[i:]
		}
		if rest != "" {
			if !say2(say, strings.HasPrefix(rest, ",") && len(rest) > 1, tag, rest) {
				return a
			}
			rest = rest[1:]
		}
		_, twice := a.values[name]
		say("attributes", !twice, "%s: %s is there twice", tag, name)
		if kind, known := types[name]; known {
			say("attributes", typed(kind, value, quoted), "%s: %s has the wrong form: %s", tag, name, value)
		}
		a.values[name], a.quoted[name] = value, quoted
	}
	return a
}

func say2(say report, ok bool, tag, rest string) bool {
	say("attributes", ok, "%s: malformed at %q", tag, rest)
	return ok
}

// require reports attributes that must be there.
func (a attributes) require(say report, tag string, names ...string) {
	for _, n := range names {
		_, ok := a.values[n]
		say("attribute-required", ok, "%s has no %s", tag, n)
	}
}

func (a attributes) text(name string) string { return a.values[name] }
func (a attributes) yes(name string) bool    { return a.values[name] == "YES" }

// number is the attribute's value, 0 when it is absent or malformed.
func (a attributes) number(name string) float64 {
	f, err := strconv.ParseFloat(a.values[name], 64)
	if err != nil {
		return 0
	}
	return f
}

// integer is the attribute's value, -1 when it is absent or malformed.
func (a attributes) integer(name string) int {
	i, err := strconv.Atoi(a.values[name])
	if err != nil {
		return -1
	}
	return i
}
