package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// table prints rows with their columns below one another.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer) table { return table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)} }

func (t table) row(cells ...any) {
	format := strings.Repeat("%v\t", len(cells))
	fmt.Fprintf(t, strings.TrimSuffix(format, "\t")+"\n", cells...)
}

// end prints what has come.
func (t table) end() error {
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

// none stands where there is nothing to show.
const none = "-"

func textOrNone(s string) string { return cmp.Or(s, none) }

func timeOrNone(at time.Time) string {
	if at.IsZero() {
		return none
	}
	return at.UTC().Format(time.RFC3339)
}
