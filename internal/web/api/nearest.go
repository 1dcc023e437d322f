package api

import (
	"net/http"
	"slices"
	"strings"

	"millrace/internal/spelling"
)

// noPath is the response to a path that no operation has. Where one differs in the spelling of one word, it is named.
func (s *server) noPath(path string) *Error {
	text := textNoPath
	if near := s.nearestPath(path); near != "" {
		text += "; did you mean " + near + "?"
	}
	return newError(http.StatusNotFound, typeNotFound, text)
}

// longestPath bounds the paths that are compared, in bytes.
const longestPath = 300

func (s *server) nearestPath(path string) string {
	if len(path) > longestPath {
		return ""
	}
	given := strings.Split(strings.TrimSuffix(path, "/"), "/")
	for i := range given {
		var words []string // that may stand there
		for template := range s.huma.OpenAPI().Paths {
			if t := strings.Split(template, "/"); matches(t, given, i) && !isParameter(t[i]) {
				words = append(words, t[i])
			}
		}
		slices.Sort(words)
		if near := spelling.Nearest(given[i], words); near != "" {
			given[i] = near
			return strings.Join(given, "/")
		}
	}
	return ""
}

// matches reports whether a path is one of a template's in all segments but the one at skip.
func matches(template, path []string, skip int) bool {
	if len(template) != len(path) {
		return false
	}
	for i, segment := range template {
		if i != skip && segment != path[i] && (!isParameter(segment) || path[i] == "") {
			return false
		}
	}
	return true
}

func isParameter(segment string) bool { return strings.HasPrefix(segment, "{") }
