package rows

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// Writer writes a stream. It is for one goroutine.
type Writer struct {
	out    *bufio.Writer
	table  Table // the one that rows are of; no name: none
	rows   int64
	tables int
	counts map[string]int64
}

// NewWriter begins a stream of tables of a schema.
func NewWriter(w io.Writer, schema int64) (*Writer, error) {
	out := &Writer{out: bufio.NewWriterSize(w, 1<<16), counts: map[string]int64{}}
	return out, out.line(head{format, schema})
}

// Table begins a table.
func (w *Writer) Table(t Table) error {
	if err := w.end(); err != nil {
		return err
	}
	w.table, w.rows = t, 0
	w.tables++
	return w.line(t)
}

// Row adds a row to the table, with a value for each of its columns.
func (w *Writer) Row(values []any) error {
	if len(values) != len(w.table.Columns) {
		return fmt.Errorf("write row of %s: it has %d values for %d columns", w.table.Name, len(values),
			len(w.table.Columns))
	}
	row := make([]any, len(values))
	for i, c := range w.table.Columns {
		v, err := c.Kind.as(values[i])
		if err != nil {
			return fmt.Errorf("write row of %s, column %s: %w", w.table.Name, c.Name, err)
		}
		if s, ok := v.(string); ok && !utf8.ValidString(s) {
			v = raw{[]byte(s)} // what JSON can't hold is kept as it is
		}
		row[i] = v
	}
	w.rows++
	return w.line(row)
}

// raw is a text that is no UTF-8.
type raw struct {
	Base64 []byte `json:"base64"`
}

func (w *Writer) end() error {
	if w.table.Name == "" {
		return nil
	}
	w.counts[w.table.Name] = w.rows
	return w.line(tableEnd{w.rows})
}

// Close ends the stream; what it was written to stays open. The counts are the rows of each table.
func (w *Writer) Close() (counts map[string]int64, err error) {
	if err := w.end(); err != nil {
		return nil, err
	}
	if err := w.line(streamEnd{w.tables}); err != nil {
		return nil, err
	}
	if err := w.out.Flush(); err != nil {
		return nil, fmt.Errorf("write rows: %w", err)
	}
	return w.counts, nil
}

func (w *Writer) line(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode rows: %w", err)
	}
	if len(text) >= maxLine {
		return fmt.Errorf("write row of %s: it has %d bytes, at most %d are possible", w.table.Name, len(text), maxLine)
	}
	if _, err = w.out.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}
