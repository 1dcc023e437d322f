package rows

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Reader reads a stream, a row at a time, whoever wrote it. It is for one goroutine.
type Reader struct {
	in     *bufio.Scanner
	schema int64
	table  Table // the one whose rows come; no name: none
	rows   int64
	tables int
}

// NewReader reads the head of a stream.
func NewReader(r io.Reader) (*Reader, error) {
	in := &Reader{in: bufio.NewScanner(r)}
	in.in.Buffer(make([]byte, 0, 1<<16), maxLine)
	text, err := in.line()
	if err != nil {
		return nil, err
	}
	var h head
	if err = json.Unmarshal(text, &h); err != nil || h.Format < 1 {
		return nil, errors.New("read rows: this is no stream of rows")
	}
	if h.Format > format {
		return nil, fmt.Errorf("read rows: %w", ErrNewer)
	}
	in.schema = h.Schema
	return in, nil
}

// Schema is the version of the tables' schema.
func (r *Reader) Schema() int64 { return r.schema }

// Next gives the next table, when all rows of the one before are read; io.EOF behind the last, when the stream is
// whole.
func (r *Reader) Next() (Table, error) {
	if r.table.Name != "" {
		return Table{}, fmt.Errorf("read rows: those of %s are not read", r.table.Name)
	}
	text, err := r.line()
	if err != nil {
		return Table{}, err
	}
	var next struct {
		Table

		Tables *int `json:"Tables"`
	}
	if err = json.Unmarshal(text, &next); err != nil {
		return Table{}, errors.New("read rows: a table has no head")
	}
	switch {
	case next.Tables != nil && *next.Tables == r.tables && next.Name == "":
		if r.in.Scan() || r.in.Err() != nil {
			return Table{}, errors.Join(errors.New("read rows: something follows their end"), r.in.Err())
		}
		return Table{}, io.EOF
	case next.Tables != nil:
		return Table{}, errors.New("read rows: a table is missing")
	case next.Name == "" || len(next.Columns) == 0 || len(next.Columns) > maxColumns:
		return Table{}, errors.New("read rows: a table has no name, or no columns")
	}
	for _, c := range next.Columns {
		switch c.Kind {
		case Text, Integer, Real, Boolean, Bytes:
		default:
			return Table{}, fmt.Errorf("read rows of %s: column %s is of the unknown kind %q", next.Name, c.Name,
				c.Kind)
		}
	}
	r.table, r.rows = next.Table, 0
	r.tables++
	return next.Table, nil
}

// Row gives the next row of the table; io.EOF behind the last.
func (r *Reader) Row() ([]any, error) {
	text, err := r.line()
	if err != nil {
		return nil, err
	}
	if text[0] == '{' {
		var end struct {
			Rows *int64 `json:"Rows"`
		}
		if err = json.Unmarshal(text, &end); err != nil || end.Rows == nil || *end.Rows != r.rows {
			return nil, fmt.Errorf("read rows of %s: not all of them are there", r.table.Name)
		}
		r.table = Table{}
		return nil, io.EOF
	}
	var values []json.RawMessage
	if err = json.Unmarshal(text, &values); err != nil || len(values) != len(r.table.Columns) {
		return nil, fmt.Errorf("read rows of %s: row %d can't be read", r.table.Name, r.rows+1)
	}
	row := make([]any, len(values))
	for i, c := range r.table.Columns {
		if row[i], err = c.Kind.read(values[i]); err != nil {
			return nil, fmt.Errorf("read rows of %s: row %d, column %s: %w", r.table.Name, r.rows+1, c.Name, err)
		}
	}
	r.rows++
	return row, nil
}

var errValue = errors.New("a value is not of its kind")

func (k Kind) read(text json.RawMessage) (v any, err error) {
	if bytes.Equal(text, []byte("null")) {
		return nil, nil //nolint:nilnil // NULL
	}
	switch k {
	case Integer:
		v, err = unmarshal[int64](text)
	case Real:
		v, err = unmarshal[float64](text)
	case Boolean:
		v, err = unmarshal[bool](text)
	case Bytes:
		v, err = unmarshal[[]byte](text)
	case Text:
		if text[0] == '{' {
			var r raw
			r, err = unmarshal[raw](text)
			v = string(r.Base64)
			break
		}
		v, err = unmarshal[string](text)
	}
	if err != nil {
		return nil, errValue // without the cause, which may repeat it
	}
	return v, nil
}

func unmarshal[T any](text []byte) (v T, err error) {
	err = json.Unmarshal(text, &v)
	return v, err //nolint:wrapcheck // is replaced
}

// line gives the next line, which is not empty. It is good until the one after it is read.
func (r *Reader) line() ([]byte, error) {
	if !r.in.Scan() {
		err := r.in.Err()
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			err = fmt.Errorf("a line has more than %d bytes", maxLine)
		case err == nil:
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read rows: %w", err)
	}
	if len(r.in.Bytes()) == 0 {
		return nil, errors.New("read rows: a line is empty")
	}
	return r.in.Bytes(), nil
}
