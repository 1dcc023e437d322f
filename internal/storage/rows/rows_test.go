package rows_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"millrace/internal/storage/rows"
)

func things() rows.Table {
	return rows.Table{Name: "things", Columns: []rows.Column{
		{Name: "id", Kind: rows.Text},
		{Name: "n", Kind: rows.Integer},
		{Name: "x", Kind: rows.Real},
		{Name: "yes", Kind: rows.Boolean},
		{Name: "raw", Kind: rows.Bytes},
	}}
}

// write writes a stream of one table with rows, and an empty one.
func write(t testing.TB, all ...[]any) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := rows.NewWriter(&out, 41)
	if err == nil {
		err = w.Table(things())
	}
	for _, r := range all {
		if err == nil {
			err = w.Row(r)
		}
	}
	if err == nil {
		err = w.Table(rows.Table{Name: "none", Columns: things().Columns[:1]})
	}
	if err != nil {
		t.Fatal(err)
	}
	counts, err := w.Close()
	if want := (map[string]int64{"things": int64(len(all)), "none": 0}); err != nil || !reflect.DeepEqual(counts,
		want) {
		t.Fatalf("counts %v, %v, want %v", counts, err, want)
	}
	return out.Bytes()
}

// read gives the rows of all tables of a stream.
func read(in io.Reader) (all [][]any, schema int64, err error) {
	r, err := rows.NewReader(in)
	if err != nil {
		return nil, 0, err
	}
	for {
		if _, err = r.Next(); errors.Is(err, io.EOF) {
			return all, r.Schema(), nil
		}
		for err == nil {
			var row []any
			if row, err = r.Row(); err == nil {
				all = append(all, row)
			}
		}
		if !errors.Is(err, io.EOF) {
			return all, 0, err
		}
	}
}

// TestRows: what engines give comes back as the values of its kinds, to the last bit.
func TestRows(t *testing.T) {
	t.Parallel()
	written := [][]any{
		{"a \"quoted\" line\nand\tü 😀", int64(math.MaxInt64), 0.1, true, []byte{0, 255}},
		{[]byte("bytes"), int64(math.MinInt64), int64(3), int64(1), "text"},
		{"not \xff UTF-8", int64(0), math.SmallestNonzeroFloat64, int64(0), []byte{}},
		{nil, nil, nil, nil, nil},
	}
	want := [][]any{
		{"a \"quoted\" line\nand\tü 😀", int64(math.MaxInt64), 0.1, true, []byte{0, 255}},
		{"bytes", int64(math.MinInt64), 3.0, true, []byte("text")},
		{"not \xff UTF-8", int64(0), math.SmallestNonzeroFloat64, false, []byte{}},
		{nil, nil, nil, nil, nil},
	}
	got, schema, err := read(bytes.NewReader(write(t, written...)))
	if err != nil || schema != 41 {
		t.Fatalf("schema %d, %v", schema, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
}

// TestWriterRefuses what no reader could make sense of.
func TestWriterRefuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string][]any{
		"values": {"a"}, "kind": {"a", "not a number", 0.5, true, nil}, "infinity": {
			"a", int64(1), math.Inf(1), true,
			nil,
		},
	} {
		w, err := rows.NewWriter(io.Discard, 1)
		if err == nil {
			err = w.Table(things())
		}
		if err != nil {
			t.Fatal(err)
		}
		if err = w.Row(row); err == nil {
			t.Errorf("%s: it is written", name)
		}
	}
}

// TestHalfAStream: no beginning of a stream is taken for a whole one, and nothing may follow it.
func TestHalfAStream(t *testing.T) {
	t.Parallel()
	whole := write(t, []any{"a", int64(1), 0.5, true, []byte("x")}, []any{"b", int64(2), 0.5, false, nil})
	for n := range len(whole) - 1 { // without its last line feed it is whole
		if _, _, err := read(bytes.NewReader(whole[:n])); err == nil {
			t.Fatalf("the first %d of %d bytes are taken for all", n, len(whole))
		}
	}
	if _, _, err := read(io.MultiReader(bytes.NewReader(whole), strings.NewReader("[]\n"))); err == nil {
		t.Error("what follows the end is passed over")
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for i := range lines { // and none with a line missing
		if i == len(lines)-1 {
			continue
		}
		less := bytes.Join(append(append([][]byte{}, lines[:i]...), lines[i+1:]...), nil)
		if _, _, err := read(bytes.NewReader(less)); err == nil {
			t.Errorf("without line %d it is taken for a whole one", i+1)
		}
	}
}

// TestBadStreams are errors, and nothing worse.
func TestBadStreams(t *testing.T) {
	t.Parallel()
	const head = `{"millrace_rows":1,"schema":1}` + "\n"
	const table = head + `{"table":"t","columns":[{"name":"a","kind":"integer"}]}` + "\n"
	for name, text := range map[string]string{
		"nothing": "", "no head": "[1]\n", "empty line": head + "\n", "no table": head + "[1]\n",
		"kind": head + `{"table":"t","columns":[{"name":"a","kind":"blob"}]}` + "\n", "no columns": head +
			`{"table":"t"}` + "\n",
		"too few": table + "[]\n", "too many": table + "[1,2]\n", "text": table + `["1"]` + "\n", "fraction": table +
			"[1.5]\n",
		"large": table + "[9223372036854775808]\n", "count": table + `[1]` + "\n" + `{"Rows":2}` + "\n",
		"many columns": head + `{"table":"t","columns":[` + strings.Repeat(`{"name":"a","kind":"text"},`, 300) +
			`{"name":"a","kind":"text"}]}` + "\n",
		"no end": table + `{"Rows":0}` + "\n", "tables": table + `{"Rows":0}` + "\n" + `{"Tables":2}` + "\n",
	} {
		if _, _, err := read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: it is taken for whole", name)
		}
	}
	if _, _, err := read(strings.NewReader(`{"millrace_rows":2}` + "\n")); !errors.Is(err, rows.ErrNewer) {
		t.Errorf("a newer format: %v", err)
	}
	if _, _, err := read(io.MultiReader(strings.NewReader(table), endless{})); err == nil {
		t.Error("a line without an end is taken")
	}
}

// endless is a line that does not end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '1'
	}
	return len(p), nil
}

func FuzzReader(f *testing.F) {
	f.Add(write(f, []any{"a", int64(1), 0.5, true, []byte("x")}))
	f.Add([]byte(`{"millrace_rows":1,"schema":1}` + "\n" + `{"Tables":0}` + "\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		all, schema, err := read(bytes.NewReader(stream))
		if err != nil {
			return
		}
		if len(all) > len(stream) {
			t.Errorf("%d rows of schema %d in %d bytes", len(all), schema, len(stream))
		}
	})
}
