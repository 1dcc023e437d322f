package api

import (
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millrace/internal/spelling"
)

const (
	// ignoredHeader names the fields of the body that have no effect: those that the service does not know, and those whose feature is
	// not there yet.
	ignoredHeader = "X-Ignored-Fields"
	// warningHeader says of each why, in plain words.
	warningHeader = "Warning"
	maxIgnored    = 20
)

// withoutEffect are the fields, by schema, that are checked, kept and returned, and whose feature is not there yet.
var withoutEffect = map[string][]string{ //nolint:gochecknoglobals // a table
	"LiveStreamCreate": {"embedded_subtitles", "generated_subtitles"},
	"AssetCreate":      {"generate_shots"},
	"NewAssetSettings": {"generate_shots"},
	"InputSettings":    {"generated_subtitles"},
	"PlaybackIDCreate": {"drm_configuration_id"},
}

const noEffectYet = "Accepted, and without effect until its feature is there."

// markWithoutEffect says in the document what withoutEffect lists.
func markWithoutEffect(schemas huma.Registry) {
	for name, fields := range withoutEffect {
		schema := schemas.Map()[name]
		for _, field := range fields {
			property := *schema.Properties[field]
			property.Description = strings.TrimSpace(property.Description + " " + noEffectYet)
			schema.Properties[field] = &property
		}
	}
}

// ignored is one field of a body that has no effect, or not the one that it will have.
type ignored struct {
	path string // empty: it has an effect, and is not named as ignored
	why  string // a sentence without its full stop
}

// notPlayableYet warns of a policy whose playback IDs are refused to everybody so far.
func notPlayableYet(path, policy string) ignored {
	return ignored{why: path + ": playback IDs with the policy " + policy + " can't be played yet"}
}

// unknownField is a field that schema does not have.
func unknownField(path, name string, schema *huma.Schema) ignored {
	known := make([]string, 0, len(schema.Properties))
	for property := range schema.Properties {
		known = append(known, property)
	}
	slices.Sort(known) // or of two that are as near it would be the one today and the other tomorrow
	why := path + " is not known"
	if near := spelling.Nearest(name, known); near != "" {
		why += "; did you mean " + near + "?"
	}
	return ignored{path, why}
}

// means says that a value asks for something: null, false, "" and what is empty do not.
func (n *node) means() bool {
	return n.boolean || n.text != "" || len(n.items) > 0 || len(n.members) > 0
}

// tellIgnored names fields without effect in the headers of the answer.
func tellIgnored(ctx huma.Context, fields []ignored) {
	var names []string
	for _, f := range fields {
		if f.path != "" {
			names = append(names, f.path)
		}
		ctx.AppendHeader(warningHeader, "299 - "+quoted(f.why)) // RFC 7234 section 5.5.7: miscellaneous, persistent
	}
	if len(names) > 0 {
		ctx.SetHeader(ignoredHeader, strings.Join(names, ", "))
	}
}

// quoted is a quoted-string of RFC 9110 section 5.6.4; s is printable ASCII.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
