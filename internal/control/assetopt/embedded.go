package assetopt

import (
	"cmp"
	"slices"

	"millrace/internal/control/field"
	"millrace/internal/control/language"
	"millrace/internal/fault"
)

// EmbeddedSubtitle asks for a text track of the CEA-608 captions in a video.
type EmbeddedSubtitle struct {
	Name            string `json:"name,omitempty"`
	LanguageCode    string `json:"language_code,omitempty"`
	LanguageChannel string `json:"language_channel,omitempty"` // cc1–cc4
	Passthrough     string `json:"passthrough,omitempty"`
}

// MaxEmbedded is how many text tracks are made of a video's captions: one for each channel.
const MaxEmbedded = 4

// firstChannel is the caption channel that is read unless another one is asked for.
const firstChannel = "cc1"

// CheckEmbedded adds what is wrong with the text tracks that are asked for of a video's captions.
func CheckEmbedded(l *fault.List, path string, all []EmbeddedSubtitle) {
	if !field.Count(l, path, len(all), MaxEmbedded) {
		return
	}
	names, channels := map[string]bool{}, map[string]bool{}
	for i, e := range all {
		at := field.At(path, i)
		field.Name(l, at+".name", e.Name, field.MaxName)
		field.Passthrough(l, at+".passthrough", e.Passthrough)
		if e.LanguageCode != "" {
			field.Language(l, at+".language_code", e.LanguageCode)
		}
		if e.LanguageChannel != "" {
			field.OneOf(l, at+".language_channel", e.LanguageChannel, "cc1", "cc2", "cc3", "cc4")
		}
		if e.Name != "" && names[e.Name] {
			l.At(at+".name", "must be unique among the text tracks")
		}
		channel := cmp.Or(e.LanguageChannel, firstChannel)
		if channels[channel] {
			l.At(at+".language_channel",
				"is asked for twice; each may be there once, and it is %s unless given", firstChannel)
		}
		names[e.Name], channels[channel] = true, true
	}
}

// NamedEmbedded fills in the defaults of text tracks that are made of captions, on a copy: English, and the language's
// own name, with the channel behind it where another of them has that name, or it is among those taken.
func NamedEmbedded(list []EmbeddedSubtitle, taken ...string) []EmbeddedSubtitle {
	named := make([]EmbeddedSubtitle, 0, len(list))
	for _, e := range list {
		e.LanguageCode, e.LanguageChannel = cmp.Or(e.LanguageCode, "en"), cmp.Or(e.LanguageChannel, firstChannel)
		named = append(named, e)
	}
	for i := range named {
		e := &named[i]
		if e.Name != "" {
			continue
		}
		other := func(o EmbeddedSubtitle) bool { return o.Name == e.Name && o.LanguageChannel != e.LanguageChannel }
		e.Name = language.EnglishName(e.LanguageCode)
		if slices.Contains(taken, e.Name) || slices.ContainsFunc(named, other) {
			e.Name += " (" + e.LanguageChannel + ")"
		}
	}
	return named
}
