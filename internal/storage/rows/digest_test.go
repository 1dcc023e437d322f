package rows_test

import (
	"strings"
	"testing"

	"millrace/internal/storage/rows"
)

// digest is that of one table.
func digest(t *testing.T, columns []rows.Column, all ...[]any) *rows.Digest {
	t.Helper()
	d := rows.NewDigest()
	err := d.Table(rows.Table{Name: "things", Columns: columns})
	for _, row := range all {
		if err == nil {
			err = d.Row(row)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDigest is the same for the same rows, in whatever order and as whatever an engine gives them, and another one for
// others.
func TestDigest(t *testing.T) {
	t.Parallel()
	columns := []rows.Column{{Name: "a", Kind: rows.Text}, {Name: "b", Kind: rows.Boolean}}
	turned := []rows.Column{columns[1], columns[0]}
	want := digest(t, columns, []any{"x", true}, []any{"y", nil}, []any{"\xff", false})
	for name, c := range map[string]struct {
		d    *rows.Digest
		says string // empty: it is the same
	}{
		"order":   {digest(t, turned, []any{int64(0), []byte("\xff")}, []any{nil, "y"}, []any{int64(1), "x"}), ""},
		"value":   {digest(t, columns, []any{"x", true}, []any{"y", nil}, []any{"\xfe", false}), "differ"},
		"null":    {digest(t, columns, []any{"x", true}, []any{"y", false}, []any{"\xff", false}), "differ"},
		"twice":   {digest(t, columns, []any{"x", true}, []any{"x", true}, []any{"\xff", false}), "differ"},
		"missing": {digest(t, columns, []any{"x", true}, []any{"y", nil}), "2 rows, and 3"},
		"none":    {rows.NewDigest(), "missing"},
	} {
		err := want.Compare(c.d)
		if same := c.d.String() == want.String(); same != (c.says == "") || same != (err == nil) ||
			err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := rows.NewDigest().Compare(want); err == nil {
		t.Error("a table too many is not seen")
	}
	if n := want.Counts()["things"]; n != 3 {
		t.Errorf("%d rows are counted", n)
	}
}
