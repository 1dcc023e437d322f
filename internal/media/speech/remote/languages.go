package remote

import "strings"

// languageNames are the languages that whisper knows, by the names that it has for them, and by other names that
// servers have.
var languageNames = map[string]string{ //nolint:gochecknoglobals // a table
	"english": "en", "chinese": "zh", "german": "de", "spanish": "es", "russian": "ru", "korean": "ko",
	"french": "fr", "japanese": "ja", "portuguese": "pt", "turkish": "tr", "polish": "pl", "catalan": "ca",
	"dutch": "nl", "arabic": "ar", "swedish": "sv", "italian": "it", "indonesian": "id", "hindi": "hi",
	"finnish": "fi", "vietnamese": "vi", "hebrew": "he", "ukrainian": "uk", "greek": "el", "malay": "ms",
	"czech": "cs", "romanian": "ro", "danish": "da", "hungarian": "hu", "tamil": "ta", "norwegian": "no",
	"thai": "th", "urdu": "ur", "croatian": "hr", "bulgarian": "bg", "lithuanian": "lt", "latin": "la", "maori": "mi",
	"malayalam": "ml", "welsh": "cy", "slovak": "sk", "telugu": "te", "persian": "fa", "latvian": "lv",
	"bengali": "bn", "serbian": "sr", "azerbaijani": "az", "slovenian": "sl", "kannada": "kn", "estonian": "et",
	"macedonian": "mk", "breton": "br", "basque": "eu", "icelandic": "is", "armenian": "hy", "nepali": "ne",
	"mongolian": "mn", "bosnian": "bs", "kazakh": "kk", "albanian": "sq", "swahili": "sw", "galician": "gl",
	"marathi": "mr", "punjabi": "pa", "sinhala": "si", "khmer": "km", "shona": "sn", "yoruba": "yo", "somali": "so",
	"afrikaans": "af", "occitan": "oc", "georgian": "ka", "belarusian": "be", "tajik": "tg", "sindhi": "sd",
	"gujarati": "gu", "amharic": "am", "yiddish": "yi", "lao": "lo", "uzbek": "uz", "faroese": "fo",
	"haitian creole": "ht", "pashto": "ps", "turkmen": "tk", "nynorsk": "nn", "maltese": "mt", "sanskrit": "sa",
	"luxembourgish": "lb", "myanmar": "my", "tibetan": "bo", "tagalog": "tl", "malagasy": "mg", "assamese": "as",
	"tatar": "tt", "hawaiian": "haw", "lingala": "ln", "hausa": "ha", "bashkir": "ba", "javanese": "jv",
	"sundanese": "su", "cantonese": "yue", "burmese": "my", "flemish": "nl", "haitian": "ht", "pushto": "ps",
	"castilian": "es", "valencian": "ca", "moldavian": "ro", "sinhalese": "si", "panjabi": "pa", "mandarin": "zh",
}

// languageCode is a language by its English name or its code; empty: the server does not say.
func languageCode(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if code, ok := languageNames[name]; ok {
		return code
	}
	if name == "jw" { // whisper's own for Javanese
		return "jv"
	}
	for _, c := range name {
		if c < 'a' || c > 'z' {
			return ""
		}
	}
	if len(name) == 2 || len(name) == 3 {
		return name
	}
	return ""
}
