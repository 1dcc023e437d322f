package assetopt

import (
	"strings"

	"millrace/internal/control/field"
	"millrace/internal/control/language"
	"millrace/internal/fault"
)

// recordedLanguages is what speech recognition can do on recordings.
func recordedLanguages() []string {
	return []string{
		"en", "es", "it", "pt", "de", "fr", "pl", "ru", "nl", "ca", "tr", "sv", "uk", "no", "fi", "sk", "el", "cs",
		"hr", "da", "ro", "bg", "auto",
	}
}

// liveLanguages is what it can do live, where a region is cut off: en-US is en.
func liveLanguages() []string { return []string{"en", "es", "fr", "de", "pt", "it"} }

const maxVocabularies = 100

// CheckLiveGenerated adds what is wrong with a live stream's generated subtitles: at most one track.
func CheckLiveGenerated(l *fault.List, path string, g []GeneratedSubtitle) {
	checkGenerated(l, path, g, liveLanguages(), 1)
}

func checkGenerated(l *fault.List, path string, all []GeneratedSubtitle, languages []string, limit int) {
	if !field.Count(l, path, len(all), limit) {
		return
	}
	live := limit == 1
	names := map[string]bool{}
	for i, g := range all {
		at := field.At(path, i)
		field.Name(l, at+".name", g.Name, field.MaxName)
		field.Passthrough(l, at+".passthrough", g.Passthrough)
		if g.Name != "" && names[g.Name] {
			l.At(at+".name", "must be unique among the text tracks")
		}
		names[g.Name] = true
		if code := g.LanguageCode; code != "" && (!live || field.Language(l, at+".language_code", code)) {
			if live {
				code = BaseLanguage(code)
			}
			field.OneOf(l, at+".language_code", code, languages...)
		}
		if len(g.VocabularyIDs) > 0 && !live {
			l.At(at+".transcription_vocabulary_ids", "may be set only for live streams")
		}
		if !field.Count(l, at+".transcription_vocabulary_ids", len(g.VocabularyIDs), maxVocabularies) {
			continue
		}
		for k, v := range g.VocabularyIDs {
			field.Text(l, field.At(at+".transcription_vocabulary_ids", k), v, field.MaxID)
		}
	}
}

// UnknownLanguage is the name of a track whose language is to be found out.
const UnknownLanguage = "Detected language"

// CheckRecordedGenerated adds what is wrong with generated subtitles of a recording.
func CheckRecordedGenerated(l *fault.List, path string, g []GeneratedSubtitle) {
	checkGenerated(l, path, g, recordedLanguages(), maxInputs)
}

// BaseLanguage cuts the region off: en-US is en.
func BaseLanguage(code string) string {
	base, _, _ := strings.Cut(code, "-")
	return base
}

// Named fills in the defaults of a generated track: English, and the language's own name.
func (g GeneratedSubtitle) Named() GeneratedSubtitle {
	if g.LanguageCode == "" {
		g.LanguageCode = "en"
	}
	if g.Name == "" {
		g.Name = UnknownLanguage
		if g.LanguageCode != "auto" {
			g.Name = language.EnglishName(g.LanguageCode)
		}
	}
	return g
}
