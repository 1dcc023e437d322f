package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// row is one figure. Higher or lower may be better; Goal says it in words.
type row struct {
	Section  string   `json:"section"`
	Name     string   `json:"name"`
	Unit     string   `json:"unit"`
	Millrace float64  `json:"millrace"`
	Peer     *float64 `json:"peer,omitempty"`
	Ratio    *float64 `json:"ratio,omitempty"` // millrace / peer
	Goal     string   `json:"goal,omitempty"`
}

// report prints rows as they come and keeps them.
type report struct {
	w       io.Writer
	rows    []row
	section string
}

func newReport(w io.Writer) *report { return &report{w: w} }

// begin starts a table.
func (r *report) begin(section, peer string) {
	r.section = section
	fmt.Fprintf(r.w, "\n%s\n%-58s %12s %12s %8s  %s\n", section, "", "millrace", peer, "ratio", "goal")
}

// alone adds a figure that has no peer.
func (r *report) alone(name, unit string, v float64, goal string) {
	r.add(row{Section: r.section, Name: name, Unit: unit, Millrace: v, Goal: goal})
}

// pair adds a figure beside the peer's.
func (r *report) pair(name, unit string, v, peer float64, goal string) {
	x := row{Section: r.section, Name: name, Unit: unit, Millrace: v, Peer: &peer, Goal: goal}
	if peer != 0 {
		ratio := v / peer
		x.Ratio = &ratio
	}
	r.add(x)
}

func (r *report) add(x row) {
	r.rows = append(r.rows, x)
	peer, ratio := "-", "-"
	if x.Peer != nil {
		peer = number(*x.Peer)
	}
	if x.Ratio != nil {
		ratio = fmt.Sprintf("%.2f", *x.Ratio)
	}
	fmt.Fprintf(r.w, "%-58s %12s %12s %8s  %s\n", x.Name+" ["+x.Unit+"]", number(x.Millrace), peer, ratio, x.Goal)
}

func number(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

// note adds a line of prose.
func (r *report) note(format string, args ...any) { fmt.Fprintf(r.w, "  "+format+"\n", args...) }

func (r *report) save(path string) error {
	b, err := json.MarshalIndent(r.rows, "", " ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}

func median(v []float64) float64 { return percentile(v, 0.5) }

// percentile of values in any order; 0 when there are none.
func percentile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
