package shell

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"testing"
	"time"

	"millrace/internal/id"
	"millrace/internal/web/follow"
)

// thing is a row of a list.
type thing id.LiveStream

func (t thing) Row() thing      { return t }
func (t thing) Name() string    { return string(t) }
func (thing) Made() time.Time   { return time.Time{} }
func (thing) Moves() bool       { return false }
func (thing) MadeOf() id.Upload { return "" }

// things has rows, and counts how often they are read.
type things struct {
	Source[thing, thing]

	all   []thing
	reads int
}

func (t *things) Some(_ context.Context, _ id.Environment, of []thing) (found []thing, err error) {
	t.reads++
	for _, v := range t.all {
		if slices.Contains(of, v) {
			found = append(found, v)
		}
	}
	if len(of) > maxAtOne {
		err = errors.New("too many")
	}
	return found, err
}

// TestChanged: rows that have changed are read and rendered once for all pages, and again when they have changed since.
func TestChanged(t *testing.T) {
	t.Parallel()
	from := &things{}
	since := map[thing]int64{"gone": 7}
	for n := range 150 {
		v := thing(fmt.Sprint("s", n))
		from.all = append(from.all, v)
		since[v] = int64(n)
	}
	c := &Rows[thing, thing]{
		Source: from, lock: follow.NewLock(), rows: map[rowKey[thing]]CachedRow[thing]{},
		page: template.Must(template.New("").Parse(`{{define "row"}}row-{{.}}{{end}}`)),
	}
	reads := func(env id.Environment, now int64, want int) map[thing]CachedRow[thing] {
		t.Helper()
		from.reads = 0
		rows, err := c.changed(t.Context(), env, since, now)
		if err != nil || len(rows) != len(since) || from.reads != want {
			t.Errorf("%d rows, read %d times, want %d; %v", len(rows), from.reads, want, err)
		}
		return rows
	}
	rows := reads("env", 200, 2)
	if r := rows["s149"]; r.Of != "s149" || r.HTML != "row-s149" {
		t.Errorf("row %+v", r)
	}
	if rows["gone"].HTML != "" {
		t.Errorf("what is deleted has %q", rows["gone"].HTML)
	}
	for range 100 {
		reads("env", 201, 0)
	}
	since["s1"] = 201
	reads("env", 201, 1)
	reads("env", 201, 0)
	reads("other", 201, 2)
	for n := range 5 {
		reads(id.Environment(fmt.Sprint(n)), 201, 2)
		if len(c.rows) > maxRows {
			t.Fatalf("%d rows are kept", len(c.rows))
		}
	}
}
