package api

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millrace/internal/fault"
)

// typeNull is the JSON Schema type of null, which huma has no name for.
const typeNull = "null"

// shaper compares a body with the schema of the operation that it is for: JSON types only, all of them, so that a
// client learns every one at once. Values are the services' business, whose rules say the rest.
//
// Fields that the schema does not name are left out and listed, not refused: clients of newer versions of the wire
// format send more than we know. A field that another operation of the resource takes is refused when it is sent to the
// one that does not change it.
type shaper struct {
	schemas  huma.Registry
	patch    bool // absent and null differ
	problems fault.List
	count    int
	ignored  []ignored // the first maxIgnored
	names    sentNames

	effectless map[string]string // why, by the path that the rules know
}

// fixedBy names the schema whose fields can be given once only, per schema of a later change.
var fixedBy = map[string]string{ //nolint:gochecknoglobals // a table
	"LiveStreamUpdate":       "LiveStreamCreate",
	"NewAssetSettingsUpdate": "NewAssetSettings",
	"AssetUpdate":            "AssetCreate",
	"TrackUpdate":            "TrackCreate",
}

// shape returns body as the schema has it: unknown fields gone, numbers of whole-number fields in their plainest form,
// and null left out where it means nothing.
func shape(body *node, schema *huma.Schema, schemas huma.Registry, method string) (shaped, error) {
	s := shaper{schemas: schemas, patch: method == http.MethodPatch}
	_, name := s.resolve(schema)
	s.effectless = effectless[name]
	clean, _ := s.value(place{}, body, schema)
	return shaped{clean, s.ignored, s.names}, s.problems.Err()
}

// shaped is a body that fits.
type shaped struct {
	value   any
	ignored []ignored
	names   sentNames
}

func (s *shaper) complain(path, format string, args ...any) {
	if s.count++; s.count <= maxMessages {
		s.problems.At(at(path), format, args...)
	}
}

func (s *shaper) resolve(schema *huma.Schema) (*huma.Schema, string) {
	if schema.Ref == "" {
		return schema, ""
	}
	return s.schemas.SchemaFromRef(schema.Ref), schema.Ref[strings.LastIndexByte(schema.Ref, '/')+1:]
}

// pick finds the alternative of schema that has n's JSON type.
func (s *shaper) pick(n *node, schema *huma.Schema) (found *huma.Schema, name string) {
	for _, alternative := range append([]*huma.Schema{schema}, schema.OneOf...) {
		r, refName := s.resolve(alternative)
		if n.kind == kindNull && r.Nullable {
			return r, refName
		}
		if fits(n.kind, r.Type) {
			return r, refName
		}
	}
	return nil, ""
}

func fits(k kind, typ string) bool {
	switch k {
	case kindNull:
		return typ == typeNull
	case kindBool:
		return typ == huma.TypeBoolean
	case kindNumber:
		return typ == huma.TypeNumber || typ == huma.TypeInteger
	case kindString:
		return typ == huma.TypeString
	case kindArray:
		return typ == huma.TypeArray
	case kindObject:
		return typ == huma.TypeObject
	}
	return false
}

// value returns the cleaned value and whether there is one.
func (s *shaper) value(where place, n *node, schema *huma.Schema) (clean any, ok bool) {
	found, name := s.pick(n, schema)
	if found == nil {
		s.complain(where.sent, "must be %s", s.describe(schema))
		return nil, false
	}
	if exact := where.alternative(schema, found); exact != where {
		where = exact
		s.names.note(where)
	}
	switch n.kind {
	case kindNull:
		return nil, true
	case kindBool:
		return n.boolean, true
	case kindString:
		return n.text, true
	case kindNumber:
		return s.number(where.sent, n.text, found.Type)
	case kindArray:
		list := make([]any, 0, len(n.items))
		for i, item := range n.items {
			v, _ := s.value(where.entry(i), item, found.Items)
			list = append(list, v)
		}
		return list, true
	case kindObject:
		return s.object(where, n, found, name), true
	}
	return nil, false
}

func (s *shaper) object(where place, n *node, schema *huma.Schema, name string) map[string]any {
	object := make(map[string]any, len(n.members))
	for _, m := range n.members {
		field := where.member(m.name, n.has(oldNames[m.name]))
		here := field.sent
		property, known := schema.Properties[m.name]
		switch {
		case !known && s.fixed(name, m.name):
			s.complain(here, "can't be changed; it is given when the resource is made")
		case !known:
			if len(s.ignored) < maxIgnored { // looking for what was meant costs something
				s.ignore(unknownField(here, m.name, schema))
			}
		case m.value.kind == kindNull && !s.patch:
			// Some clients send null for what they have not set.
		default:
			if oldNames[m.name] != "" {
				s.names.note(field)
			}
			if v, ok := s.value(field, m.value, property); ok {
				object[m.name] = v
				if why := s.effectless[field.known]; why != "" && v != false {
					s.ignore(ignored{here, here + " " + why})
				}
			}
		}
	}
	return object
}

func (s *shaper) ignore(f ignored) {
	if len(s.ignored) < maxIgnored {
		s.ignored = append(s.ignored, f)
	}
}

func (s *shaper) fixed(schema, field string) bool {
	creation := s.schemas.Map()[fixedBy[schema]]
	return creation != nil && creation.Properties[field] != nil
}

func (s *shaper) number(path, text, typ string) (json.Number, bool) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(f) > 1<<53 {
		s.complain(path, "must be a number of at most 9007199254740992")
		return "", false
	}
	if typ == huma.TypeInteger {
		if f != math.Trunc(f) {
			s.complain(path, "must be a whole number")
			return "", false
		}
		text = strconv.FormatInt(int64(f), 10) // 60.0 and 6e1 are whole numbers too
	}
	return json.Number(text), true
}

// describe says in words what JSON types schema allows.
func (s *shaper) describe(schema *huma.Schema) string {
	var words []string
	for _, alternative := range append([]*huma.Schema{schema}, schema.OneOf...) {
		r, _ := s.resolve(alternative)
		if r.Type != "" {
			words = append(words, s.word(r))
		}
		if r.Nullable {
			words = append(words, "null")
		}
	}
	words = slices.Compact(words)
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func (s *shaper) word(schema *huma.Schema) string {
	switch schema.Type {
	case huma.TypeBoolean:
		return "true or false"
	case huma.TypeInteger:
		return "a whole number"
	case huma.TypeNumber:
		return "a number"
	case huma.TypeString:
		return "a string"
	case huma.TypeArray:
		return "an array whose entries are each " + s.describe(schema.Items)
	case huma.TypeObject:
		return "an object"
	}
	return schema.Type
}
