package rows

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// Digest sums up tables: two databases that have the same rows have the same digest, whatever the order of their rows
// and columns. It is filled like a Writer.
type Digest struct {
	table  Table
	order  []int // of the columns, by name
	tables map[string]*tableSum
}

// tableSum is how many rows a table has, and the sum of their hashes.
type tableSum struct {
	rows int64
	sum  [sha256.Size / 8]uint64
}

// NewDigest is that of no tables.
func NewDigest() *Digest { return &Digest{tables: map[string]*tableSum{}} }

// Table turns to a table.
func (d *Digest) Table(t Table) error {
	if d.tables[t.Name] != nil {
		return fmt.Errorf("compare rows: table %s comes twice", t.Name)
	}
	d.table, d.tables[t.Name], d.order = t, &tableSum{}, nil
	for i := range t.Columns {
		d.order = append(d.order, i)
	}
	slices.SortFunc(d.order, func(a, b int) int { return cmp.Compare(t.Columns[a].Name, t.Columns[b].Name) })
	return nil
}

// Row adds a row of the table.
func (d *Digest) Row(values []any) error {
	row := make([]any, 0, 2*len(values)) //nolint:mnd // a name and a value
	for _, i := range d.order {
		c := d.table.Columns[i]
		v, err := c.Kind.as(values[i])
		if err != nil {
			return fmt.Errorf("compare rows of %s, column %s: %w", d.table.Name, c.Name, err)
		}
		if s, ok := v.(string); ok && !utf8.ValidString(s) {
			v = raw{[]byte(s)}
		}
		row = append(row, c.Name, v)
	}
	text, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("compare rows of %s: %w", d.table.Name, err)
	}
	d.tables[d.table.Name].add(sha256.Sum256(text))
	return nil
}

func (t *tableSum) add(hash [sha256.Size]byte) {
	t.rows++
	var carry uint64
	for i := range t.sum {
		t.sum[i], carry = bits.Add64(t.sum[i], binary.LittleEndian.Uint64(hash[8*i:]), carry)
	}
}

// Counts are the rows of each table.
func (d *Digest) Counts() map[string]int64 {
	counts := map[string]int64{}
	for name, s := range d.tables {
		counts[name] = s.rows
	}
	return counts
}

// String is the same for the same rows.
func (d *Digest) String() string {
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(d.tables)) {
		s := d.tables[name]
		fmt.Fprintf(all, "%s %d %x\n", name, s.rows, s.sum)
	}
	return hex.EncodeToString(all.Sum(nil))
}

// Compare says which table is not the same in another; nil: none.
func (d *Digest) Compare(with *Digest) error {
	for _, name := range slices.Sorted(maps.Keys(d.tables)) {
		one, other := d.tables[name], with.tables[name]
		switch {
		case other == nil:
			return fmt.Errorf("compare rows: table %s is missing", name)
		case one.rows != other.rows:
			return fmt.Errorf("compare rows: table %s has %d rows, and %d were expected", name, other.rows, one.rows)
		case one.sum != other.sum:
			return fmt.Errorf("compare rows: table %s has rows that differ", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(with.tables)) {
		if d.tables[name] == nil {
			return fmt.Errorf("compare rows: table %s is one too many", name)
		}
	}
	return nil
}
