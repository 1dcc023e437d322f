package api

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// A body may say the same in several ways: by a field's old name, by one value in place of an array, by a URL in place
// of an input. The rules know one of them, by which their messages name fields; what the client reads is what the
// client wrote.

// place is where a value of a body is.
type place struct {
	sent  string // path in the body
	known string // path by which the rules know it
}

// sentNames are the places where the two paths part.
type sentNames []place

const maxSentNames = 200 // more than there may be policies, or inputs

// oldNames are the fields that have a newer name for the same.
var oldNames = map[string]string{ //nolint:gochecknoglobals // a table
	"playback_policy": "playback_policies",
	"input":           "inputs",
}

// member is where a field of an object is. newer says that the body has the field by its newer name too.
func (p place) member(name string, newer bool) place {
	known := name
	if now := oldNames[name]; now != "" && !newer {
		known = now
	}
	return place{join(p.sent, name), join(p.known, known)}
}

func (p place) entry(i int) place { return place{index(p.sent, i), index(p.known, i)} }

// alternative is where the value itself is when schema allows other forms than the one that was chosen.
func (p place) alternative(schema, chosen *huma.Schema) place {
	for _, other := range schema.OneOf {
		if other.Type == huma.TypeArray && chosen.Type != huma.TypeArray {
			p.known = index(p.known, 0)
		}
	}
	if chosen.Type == huma.TypeString &&
		slices.ContainsFunc(schema.OneOf, func(s *huma.Schema) bool {
			return strings.HasSuffix(s.Ref, "/InputSettings")
		}) {
		p.known = join(p.known, "url")
	}
	return p
}

// note keeps p when its paths part there.
func (s *sentNames) note(p place) {
	if p.sent != p.known && len(*s) < maxSentNames {
		*s = append(*s, p)
	}
}

// within says messages with the paths of the body.
func (s sentNames) within(messages []string) []string {
	if len(s) == 0 || len(messages) == 0 {
		return messages
	}
	sorted := slices.Clone(s)
	// the longest first
	slices.SortStableFunc(sorted, func(a, b place) int { return cmp.Compare(len(b.known), len(a.known)) })
	sent, known := map[string]string{}, make([]string, len(sorted))
	for i, p := range sorted {
		sent[p.known], known[i] = p.sent, regexp.QuoteMeta(p.known)
	}
	paths := regexp.MustCompile(`(^|[^\w.])(` + strings.Join(known, "|") + `)($|\W)`)
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = paths.ReplaceAllStringFunc(m, func(found string) string {
			part := paths.FindStringSubmatch(found)
			return part[1] + sent[part[2]] + part[3]
		})
	}
	return out
}

// namesOf are those of a request's body.
func namesOf(ctx context.Context) sentNames {
	names, _ := ctx.Value(namesKey).(sentNames)
	return names
}
