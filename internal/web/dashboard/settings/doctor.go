package settings

import (
	"context"
	"errors"
	"strings"
	"time"

	"millrace/internal/web/dashboard/shell"
)

const (
	healthPath = shell.SettingsPath + "/health"
	// longestLook is how long it may take to look at everything, with the wait for somebody else who does.
	longestLook = time.Minute
)

// Finding is what came of one check of the machine or of what the service stands on.
type Finding struct {
	Name, Text string
	Mend       string // what to do about it; empty when all is well
	Level      Level
}

// Level says how bad a finding is.
type Level string

// The levels.
const (
	Fine    Level = "ok"
	Warning Level = "warning" // works, but look at it
	Problem Level = "problem" // does not work
)

// Examine makes the checks of millrace doctor, one after the other, and tells of each as soon as it is done. It ends
// soon after ctx does, with its error.
type Examine func(ctx context.Context, tell func(Finding)) error

func (rm *room) routeHealth() {
	rm.Handle("GET "+healthPath, "", shell.Owns, rm.showHealth)
	rm.Handle("POST "+healthPath, "", shell.Owns, rm.lookAtHealth)
}

// examination is the page of what was found.
type examination struct {
	Findings []Finding
	At       time.Time // zero: nobody has looked
	Late     bool      // it was ended before all was looked at
}

// Section is where in the settings the page is.
func (examination) Section() string { return "health" }

// Count is how many findings have a level.
func (e examination) Count(level Level) (n int) {
	for _, f := range e.Findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

// Sentence is what was found.
func (f Finding) Sentence() string { return ended(f.Text) }

// Do is what to do about it.
func (f Finding) Do() string { return ended(f.Mend) }

// ended is a text with an end, where it has none.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

func (rm *room) showHealth(_ *shell.Request) (shell.View, error) {
	return shell.Show("doctor", examination{}), nil
}

// lookAtHealth looks at everything, as long as somebody waits for it. One looks at a time: others wait for their turn.
func (rm *room) lookAtHealth(r *shell.Request) (shell.View, error) {
	ctx, cancel := context.WithTimeout(r.Context(), longestLook)
	defer cancel()
	e := examination{At: rm.Now()}
	err := rm.look(ctx, func(f Finding) { e.Findings = append(e.Findings, f) })
	if e.Late = errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil; e.Late {
		err = nil
	}
	return shell.Show("doctor", e), err
}

func (rm *room) look(ctx context.Context, tell func(Finding)) error {
	select {
	case rm.looking <- struct{}{}:
		defer func() { <-rm.looking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return rm.Examine(ctx, tell)
}
