// Package rows is how tables are written down apart from an engine: a stream of lines of JSON, which any database that
// has the same schema can read in. Pure; it must never know SQL, which tables there are, or what they mean.
package rows

import (
	"errors"
	"fmt"
)

// Kind is what a column holds. NULL is possible in each.
type Kind string

// The kinds, and the Go types of their values.
const (
	Text    Kind = "text"    // string
	Integer Kind = "integer" // int64
	Real    Kind = "real"    // float64
	Boolean Kind = "boolean" // bool
	Bytes   Kind = "bytes"   // []byte
)

// Column is a column of a table.
type Column struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
}

// Table is the head of a table.
type Table struct {
	Name    string   `json:"table"`
	Columns []Column `json:"columns"`
}

// Index is the place of a column; -1: there is none.
func (t Table) Index(name string) int {
	for i, c := range t.Columns {
		if c.Name == name {
			return i
		}
	}
	return -1
}

const (
	format = 1
	// maxLine is the longest line, in bytes. Documents and segments of a timeline have some kB.
	maxLine = 64 << 20
	// maxColumns is the most columns of a table.
	maxColumns = 200
)

// ErrNewer is of a stream that a newer version has written.
var ErrNewer = errors.New("it was written by a newer version")

// head is the first line.
type head struct {
	Format int   `json:"millrace_rows"`
	Schema int64 `json:"schema"`
}

// tableEnd is behind the rows of a table, and streamEnd behind the tables.
type (
	tableEnd  struct{ Rows int64 }
	streamEnd struct{ Tables int }
)

// as gives a value as one of the kind, nil for NULL: engines give texts as bytes and the reverse, and numbers for
// booleans.
func (k Kind) as(v any) (any, error) {
	if v == nil {
		return nil, nil //nolint:nilnil // NULL
	}
	switch k {
	case Text:
		switch v := v.(type) {
		case string:
			return v, nil
		case []byte:
			return string(v), nil
		}
	case Bytes:
		switch v := v.(type) {
		case []byte:
			return v, nil
		case string:
			return []byte(v), nil
		}
	case Integer:
		if n, ok := v.(int64); ok {
			return n, nil
		}
	case Boolean:
		switch v := v.(type) {
		case bool:
			return v, nil
		case int64:
			return v != 0, nil
		}
	case Real:
		switch v := v.(type) {
		case float64:
			return v, nil
		case int64:
			return float64(v), nil
		}
	}
	return nil, fmt.Errorf("a value of kind %s is a %T", k, v)
}
