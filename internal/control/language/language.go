// Package language checks and names the languages of tracks: BCP 47 tags in canonical form, and their English names.
//
// It is pure: it knows the subtag registry, but no tracks or requests. It starts no goroutine.
package language

import (
	"errors"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// maxLength is well over the 35 characters that RFC 5646 4.4.1 asks for.
const maxLength = 64

// Tag is a valid BCP 47 tag in canonical form. The zero value is "und", an undetermined language.
type Tag struct{ tag language.Tag }

// Parse reads a tag such as "en", "pt-BR" or "zh-Hant". It has to be well-formed, with a registered primary language
// and no unknown subtag. The error goes on after the name of the field and doesn't repeat the value: "must be a BCP 47
// language tag such as en, pt-BR or zh-Hant: …".
func Parse(code string) (Tag, error) {
	switch {
	case code == "":
		return Tag{}, invalid("it is empty")
	case len(code) > maxLength:
		return Tag{}, invalid("it is longer than 64 characters")
	case strings.Contains(code, "_"):
		return Tag{}, invalid("its parts are joined by -, not by _")
	case strings.HasPrefix(strings.ToLower(code), "x-"):
		return Tag{}, invalid("it has to begin with a registered language")
	}
	tag, err := language.BCP47.Parse(code)
	if _, unknown := errors.AsType[language.ValueError](err); unknown {
		if base, _, _ := tag.Raw(); base.String() == "und" {
			return Tag{}, invalid("its language is not registered")
		}
		return Tag{}, invalid("its script, region or variant is not registered")
	}
	if err != nil {
		return Tag{}, invalid("it is not well-formed")
	}
	return Tag{tag: tag}, nil
}

func invalid(why string) error {
	return errors.New("must be a BCP 47 language tag such as en, pt-BR or zh-Hant: " + why)
}

// String is the canonical form: "EN-us" became "en-US", "iw" became "he".
func (t Tag) String() string { return t.tag.String() }

// EnglishName is the usual English name, such as "American English" for en-US; never empty.
func (t Tag) EnglishName() string {
	switch t.tag.String() { // where the naming tables know a relative only
	case "no":
		return "Norwegian"
	case "tl":
		return "Tagalog"
	case "sr-Latn":
		return "Serbian (Latin)"
	}
	if name := display.English.Tags().Name(t.tag); name != "" {
		return name
	}
	return "Unknown language"
}

// EnglishName names the language of code; what is no valid tag is an unknown language.
func EnglishName(code string) string {
	t, err := Parse(code)
	if err != nil {
		return Tag{}.EnglishName()
	}
	return t.EnglishName()
}
