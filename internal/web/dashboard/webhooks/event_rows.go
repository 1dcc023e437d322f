package webhooks

import (
	"context"
	"strconv"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/event"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

// Row, Name, Made, Moves and MadeOf are those of a row. Clocks of nodes differ: the order of events is that of their
// sequence.
func (h loggedEvent) Row() eventKey   { return keyOf(h.Sequence) }
func (h loggedEvent) Name() string    { return h.Type }
func (h loggedEvent) Made() time.Time { return time.Unix(h.Sequence, 0) }
func (h loggedEvent) Moves() bool     { return h.Waits() }
func (loggedEvent) MadeOf() id.Upload { return "" }

// eventSource has the rows of the event log. Each event is a new row. That a webhook got it, or did not, is no event.
type eventSource struct {
	*eventLog
	shell.Uncounted
}

// About implements source.
func (eventSource) About(h shell.Change) eventKey { return keyOf(h.Sequence) }

// Load implements source.
func (s eventSource) Load(ctx context.Context, p access.Person, f shell.Selection) (shell.Loaded[loggedEvent], error) {
	l, err := s.events(ctx, p, f)
	return shell.Loaded[loggedEvent]{Selection: l.Selection, Rows: l.Rows}, err
}

// Some implements source.
func (s eventSource) Some(ctx context.Context, env id.Environment, keys []eventKey) ([]loggedEvent, error) {
	return s.someEvents(ctx, env, keys)
}

// Fits implements source.
func (eventSource) Fits(f shell.Selection, v loggedEvent) bool {
	return (f.Status == "" || v.Type == f.Status) && (f.Query == "" || v.ObjectID == f.Query || v.Resource == f.Query)
}

// Gone implements source.
func (eventSource) Gone(of eventKey, name string) loggedEvent {
	sequence, _ := strconv.ParseInt(string(of), 10, 64)
	return loggedEvent{Event: event.Event{Sequence: sequence, Type: name}}
}
