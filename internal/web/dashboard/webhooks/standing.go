package webhooks

import (
	"slices"
	"time"

	"millrace/internal/control/webhook"
)

// Class and Word are how far an event has come, at all webhooks taken together: what is wrong is said first, then what
// is still to come.
func (h loggedEvent) Class() string {
	class, _ := h.standing()
	return class
}

func (h loggedEvent) Word() string {
	_, word := h.standing()
	return word
}

func (h loggedEvent) standing() (class, word string) {
	is := func(state webhook.State, tried bool) bool {
		return slices.ContainsFunc(h.standings, func(s webhook.Standing) bool {
			return s.State == state && (s.Tried || !tried)
		})
	}
	switch {
	case is(webhook.Failed, false):
		return "fault", "Failed"
	case is(webhook.Waiting, true):
		return "fault", "Attempt failed"
	case is(webhook.Waiting, false):
		return "", "Waiting"
	case is(webhook.Delivered, false):
		return "ok", "Delivered"
	case is(webhook.Skipped, false):
		return "off", "Skipped"
	case len(h.standings) > 0:
		return "off", "Not sent" // to those that were made, enabled or changed after it
	}
	return "off", "No webhook wants it"
}

// Waits reports whether it is still to be sent to a webhook.
func (h loggedEvent) Waits() bool {
	return slices.ContainsFunc(h.standings, func(s webhook.Standing) bool { return s.State == webhook.Waiting })
}

// Next is when the first of those attempts is made that are known; zero: none is.
func (h loggedEvent) Next() (at time.Time) {
	for _, s := range h.standings {
		if s.State == webhook.Waiting && !s.NextAt.IsZero() && (at.IsZero() || s.NextAt.Before(at)) {
			at = s.NextAt
		}
	}
	return at
}
