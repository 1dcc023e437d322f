package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

func parseWord(text string) (string, error) { return strings.TrimSpace(text), nil }

// parseRules checks the form of pairs, language=engine with commas between them.
func parseRules(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	for part := range strings.SplitSeq(text, ",") {
		if language, engine, ok := strings.Cut(part, "="); !ok || strings.TrimSpace(language) == "" ||
			strings.TrimSpace(engine) == "" {
			return "", errors.New("must be pairs such as en=pocketsphinx,*=openai")
		}
	}
	return text, nil
}

// serverSchemes are the schemes of the URLs of each kind of server.
func serverSchemes(kind string) []string {
	switch kind {
	case "openai", "whisper":
		return []string{"http", "https"}
	case "vosk", "sherpa":
		return []string{"ws", "wss"}
	}
	return nil
}

// parseServers reads pairs, kind=URL with commas between them.
func parseServers(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var out []string
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		kind, where, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || seen[kind] {
			return nil, errors.New("must be pairs such as openai=https://host,vosk=ws://host:2700, each kind once")
		}
		seen[kind] = true
		schemes := serverSchemes(kind)
		if schemes == nil {
			return nil, fmt.Errorf("%q is no kind of server: openai, whisper, vosk or sherpa", kind)
		}
		u, err := url.Parse(where)
		if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) || u.User != nil {
			return nil, fmt.Errorf("%s must have a URL with the scheme %s and without a password", kind,
				strings.Join(schemes, " or "))
		}
		out = append(out, kind+"="+where)
	}
	return out, nil
}
