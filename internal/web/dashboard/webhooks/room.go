// Package webhooks has the dashboard's pages about the event log, the webhooks of an environment and what was delivered
// to them. It must never know live streams and assets, except for the addresses of their pages. It starts no
// goroutines.
package webhooks

import (
	"context"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/web/dashboard/shell"
)

// Options is what the room needs.
type Options struct {
	Webhooks   webhook.API
	EventTypes []string // of all events that can happen
	// ShowEvent is an event as JSON, as the API shows it: without secrets.
	ShowEvent func(ctx context.Context, e event.Event) ([]byte, error)
}

type room struct {
	*shell.Shell
	Options
}

// eventLog is the pages of what happened.
type eventLog struct {
	*room

	rows *shell.Rows[eventKey, loggedEvent]
}

// Add adds the pages of the room.
func Add(s *shell.Shell, o Options) {
	r := &room{s, o}
	l := &eventLog{room: r}
	l.rows = shell.NewRows(s, "events", eventSource{eventLog: l})
	r.route()
	l.route()
}
