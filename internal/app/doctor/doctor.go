// Package doctor checks whether this machine can run the service with the given settings, and explains what is wrong
// and how to fix it. Each check is a small value; it changes nothing and leaves nothing behind. It must never know how
// the service uses what it checks. It owns no goroutines.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // works, but look at it
	Problem Level = "problem" // does not work
)

func (l Level) sign() string {
	switch l {
	case OK:
		return "✓"
	case Warning:
		return "!"
	case Problem:
	}
	return "✗"
}

// Finding is the outcome of one check.
type Finding struct {
	Name  string `json:"name"`
	Level Level  `json:"level"`
	Text  string `json:"finding"`
	Mend  string `json:"mend,omitempty"` // what to do about it; empty when all is well
}

func ok(format string, args ...any) Finding {
	return Finding{Level: OK, Text: fmt.Sprintf(format, args...)}
}

func warning(mend, format string, args ...any) Finding {
	return Finding{Level: Warning, Mend: mend, Text: fmt.Sprintf(format, args...)}
}

func problem(mend, format string, args ...any) Finding {
	return Finding{Level: Problem, Mend: mend, Text: fmt.Sprintf(format, args...)}
}

// Check looks at one thing.
type Check interface {
	// Name is one or two words, the same at every run.
	Name() string
	// Run looks, and ends soon after ctx does. The finding's name is filled in by the caller.
	Run(ctx context.Context) Finding
}

// patience is how long one check may take.
const patience = 20 * time.Second

// Run runs the checks one after the other and tells of each as soon as it is done, or of all in one JSON document.
// It reports whether no check found a problem; the error is that of writing, or the end of ctx.
func Run(ctx context.Context, checks []Check, w io.Writer, asJSON bool) (healthy bool, err error) {
	width := 0
	for _, c := range checks {
		width = max(width, len(c.Name()))
	}
	healthy = true
	findings := make([]Finding, 0, len(checks))
	err = Examine(ctx, checks, func(f Finding) error {
		healthy = healthy && f.Level != Problem
		findings = append(findings, f)
		if asJSON {
			return nil
		}
		return f.print(w, width)
	})
	if err != nil {
		return false, err
	}
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(map[string]any{"healthy": healthy, "findings": findings}); err != nil {
			return false, fmt.Errorf("print findings: %w", err)
		}
	}
	return healthy, nil
}

// Examine runs the checks one after the other and tells of each as soon as it is done. The error is that of tell, or
// the end of ctx.
func Examine(ctx context.Context, checks []Check, tell func(Finding) error) error {
	for _, c := range checks {
		f := run(ctx, c)
		if ctx.Err() != nil {
			return fmt.Errorf("check %s: %w", c.Name(), context.Cause(ctx))
		}
		if err := tell(f); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, c Check) Finding {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f := c.Run(ctx)
	f.Name = c.Name()
	return f
}

func (f Finding) print(w io.Writer, width int) error {
	_, err := fmt.Fprintf(w, "%s %-*s  %s\n", f.Level.sign(), width, f.Name, f.Text)
	if err == nil && f.Mend != "" {
		_, err = fmt.Fprintf(w, "  %*s  → %s\n", width, "", f.Mend)
	}
	if err != nil {
		return fmt.Errorf("print finding: %w", err)
	}
	return nil
}
