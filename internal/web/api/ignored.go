package api

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millrace/internal/spelling"
)

const (
	// ignoredHeader names the fields of the body, and the parameters of the query, that the service does not know, or
	// that have no effect there.
	ignoredHeader = "X-Ignored-Fields"
	// warningHeader says of each why, in plain words.
	warningHeader = "Warning"
	maxIgnored    = 20
)

// ignored is one field of a body that has no effect, or not the one that it will have.
type ignored struct {
	path string // empty: it has an effect, and is not named as ignored
	why  string // a sentence without its full stop
}

// unknownField is a field that schema does not have.
func unknownField(path, name string, schema *huma.Schema) ignored {
	known := make([]string, 0, len(schema.Properties))
	for property := range schema.Properties {
		known = append(known, property)
	}
	return unknown(path, name, known)
}

// unknownParameters are those of a query that op does not have.
func unknownParameters(query url.Values, op *huma.Operation) (out []ignored) {
	var known []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			known = append(known, p.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(known, name) && len(out) < maxIgnored {
			out = append(out, unknown(join("", name), name, known))
		}
	}
	return out
}

// unknown is a name that is none of those that are known, with what was probably meant.
func unknown(path, name string, known []string) ignored {
	slices.Sort(known) // or of two that are as near it would be the one today and the other tomorrow
	why := path + " is not known"
	if near := spelling.Nearest(name, known); near != "" {
		why += "; did you mean " + near + "?"
	}
	return ignored{path, why}
}

// effectless are the fields that a request takes and that change nothing: by the schema of the body and their place in
// it, why.
var effectless = map[string]map[string]string{ //nolint:gochecknoglobals // a table
	"LiveStreamCreate": {
		"new_asset_settings.normalize_audio": "has no effect on recordings of live streams, whose sound stays as it " +
			"was sent",
	},
}

// ignoredReporter is a request whose response names what had no effect. One that is refused had none at all, and names
// nothing.
type ignoredReporter struct {
	wrapped
	fields []ignored
}

func (i ignoredReporter) Unwrap() huma.Context { return i.wrapped }
func (i ignoredReporter) SetStatus(code int) {
	if code < http.StatusBadRequest {
		reportIgnored(i.wrapped, i.fields)
	}
	i.wrapped.SetStatus(code)
}

// reportIgnored names fields without effect in the headers of the response.
func reportIgnored(ctx huma.Context, fields []ignored) {
	var names []string
	for _, f := range fields {
		if f.path != "" {
			names = append(names, f.path)
		}
		ctx.AppendHeader(warningHeader, "299 - "+quoted(f.why)) // RFC 7234 section 5.5.7: miscellaneous, persistent
	}
	if len(names) > 0 {
		ctx.AppendHeader(ignoredHeader, strings.Join(names, ", "))
	}
}

// quoted is a quoted-string of RFC 9110 section 5.6.4; s is printable ASCII.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
