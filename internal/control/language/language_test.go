package language

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]struct{ canonical, name string }{
		"en":               {"en", "English"},
		"EN-us":            {"en-US", "American English"},
		"pt-BR":            {"pt-BR", "Brazilian Portuguese"},
		"de":               {"de", "German"},
		"zh-hant-tw":       {"zh-Hant-TW", "Traditional Chinese (Taiwan)"},
		"zh-Hans":          {"zh-Hans", "Simplified Chinese"},
		"zh-yue":           {"yue", "Cantonese"},
		"es-419":           {"es-419", "Latin American Spanish"},
		"iw":               {"he", "Hebrew"},
		"en-Latn":          {"en", "English"},
		"i-klingon":        {"tlh", "Klingon"},
		"sr-Latn":          {"sr-Latn", "Serbian (Latin)"},
		"nb":               {"nb", "Norwegian Bokmål"},
		"no":               {"no", "Norwegian"},
		"fil":              {"fil", "Filipino"},
		"tl":               {"tl", "Tagalog"},
		"de-DE-1996":       {"de-DE-1996", "German (Germany)"},
		"en-US-u-rg-gbzzz": {"en-US-u-rg-gbzzz", "American English"},
		"de-x-foo":         {"de-x-foo", "German"},
		"ase":              {"ase", "American Sign Language"},
		"und":              {"und", "Unknown language"},
		"mul":              {"mul", "Multiple languages"},
		"qaa":              {"qaa", "Unknown language"},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			tag, err := Parse(code)
			if err != nil {
				t.Fatal(err)
			}
			if tag.String() != want.canonical || tag.EnglishName() != want.name || EnglishName(code) != want.name {
				t.Errorf("got %q %q, want %q %q", tag, tag.EnglishName(), want.canonical, want.name)
			}
			if again, err := Parse(tag.String()); err != nil || again.String() != want.canonical {
				t.Errorf("canonical form reads back as %q, %v", again, err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"":                       "it is empty",
		strings.Repeat("a-", 40): "it is longer than 64 characters",
		"en_US":                  "its parts are joined by -, not by _",
		"x-private":              "it has to begin with a registered language",
		"X-private":              "it has to begin with a registered language",
		"xx":                     "its language is not registered",
		"xyz-US":                 "its language is not registered",
		"en-foobar":              "its script, region or variant is not registered",
		"auto":                   "it is not well-formed",
		"english":                "it is not well-formed",
		"en-":                    "it is not well-formed",
		"en US":                  "it is not well-formed",
		"en\x00":                 "it is not well-formed",
		"<script>":               "it is not well-formed",
		"en;q=0.5":               "it is not well-formed",
		"ｅｎ":                     "it is not well-formed",
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(code)
			if err == nil ||
				!strings.HasPrefix(err.Error(), "must be a BCP 47 language tag such as en, pt-BR or zh-Hant: ") ||
				!strings.HasSuffix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if EnglishName(code) != "Unknown language" {
				t.Errorf("named %q", EnglishName(code))
			}
		})
	}
	if (Tag{}).String() != "und" {
		t.Errorf("zero tag is %q", Tag{})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"en", "zh-Hant-TW", "de-x-a", "en-a-bb-b-cc", "i-klingon", "en-1994-1994"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, code string) {
		tag, err := Parse(code)
		if err != nil {
			return
		}
		again, err := Parse(tag.String())
		if err != nil || again.String() != tag.String() || tag.EnglishName() == "" {
			t.Fatalf("%q became %q, which reads as %q, %v", code, tag, again, err)
		}
	})
}
