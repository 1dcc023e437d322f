package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// OneOrMany is an array of T, for which a single T may stand.
type OneOrMany[T any] []T

// UnmarshalJSON reads a T or an array of T; null is none.
func (o *OneOrMany[T]) UnmarshalJSON(b []byte) error {
	*o = nil
	switch b = bytes.TrimSpace(b); {
	case string(b) == typeNull:
		return nil
	case len(b) > 0 && b[0] == '[':
		return json.Unmarshal(b, (*[]T)(o))
	}
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*o = []T{v}
	return nil
}

// Schema documents the alternatives.
func (OneOrMany[T]) Schema(r huma.Registry) *huma.Schema {
	one := r.Schema(reflect.TypeFor[T](), true, "")
	alternatives := one.OneOf
	if len(alternatives) == 0 {
		alternatives = []*huma.Schema{one}
	}
	return &huma.Schema{OneOf: append(slices.Clip(alternatives), &huma.Schema{Type: huma.TypeArray, Items: one})}
}

// Optional tells a field that is absent from one that is null, for PATCH: null clears what can be cleared, as its zero
// value does.
type Optional[T any] struct {
	Set   bool // it was in the body, null or not
	Null  bool // it was null
	Value T    // the zero value for null
}

// UnmarshalJSON reads a T or null.
func (o *Optional[T]) UnmarshalJSON(b []byte) error {
	*o = Optional[T]{Set: true, Null: string(bytes.TrimSpace(b)) == typeNull}
	if o.Null {
		return nil
	}
	return json.Unmarshal(b, &o.Value)
}

// Schema documents T or null.
func (Optional[T]) Schema(r huma.Registry) *huma.Schema {
	s := r.Schema(reflect.TypeFor[T](), true, "")
	if s.Ref != "" {
		return &huma.Schema{OneOf: []*huma.Schema{s, {Type: typeNull}}}
	}
	c := *s
	c.Nullable = true
	return &c
}

// Ptr is nil when the field was absent.
func (o Optional[T]) Ptr() *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}
