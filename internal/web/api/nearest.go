package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

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
	templates := s.templates[len(given)]
	if templates == nil {
		return ""
	}
	for i := range given {
		var words []string // that may stand there
		for _, t := range templates {
			if matches(t, given, i) && !isParameter(t[i]) {
				words = append(words, t[i])
			}
		}
		if near := spelling.Nearest(given[i], words); near != "" {
			given[i] = near
			return strings.Join(given, "/")
		}
	}
	return ""
}

// templatesOf are the paths of the document's operations in segments, by their number: a path is compared with a few.
func templatesOf(d *huma.OpenAPI) map[int][][]string {
	templates := map[int][][]string{}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		segments := strings.Split(path, "/")
		templates[len(segments)] = append(templates[len(segments)], segments)
	}
	return templates
}

// matches reports whether a path is one of a template's, which has as many segments, in all of them but the one at
// skip.
func matches(template, path []string, skip int) bool {
	for i, segment := range template {
		if i != skip && segment != path[i] && (!isParameter(segment) || path[i] == "") {
			return false
		}
	}
	return true
}

func isParameter(segment string) bool { return strings.HasPrefix(segment, "{") }
