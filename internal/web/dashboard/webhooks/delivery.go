package webhooks

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"millrace/internal/control/webhook"
	"millrace/internal/web/dashboard/shell"
)

const (
	// maxTries is how many attempts of a delivery the page of a webhook shows, the newest.
	maxTries = 10
	allTries = 1000 // more than there can be
)

// delivery is one event for one webhook as pages show it.
type delivery struct {
	webhook.Delivery

	Webhook endpoint
	most    int // attempts that are shown
}

// Key is what the ID of its element has.
func (d delivery) Key() string { return strconv.FormatInt(d.Sequence, 10) + "-" + string(d.Webhook.ID) }

// Event is the page of the event.
func (d delivery) Event() string { return eventPage(d.Sequence) }

// Again is where it is sent again.
func (d delivery) Again() string {
	return d.Webhook.Page() + "/deliveries/" + url.PathEscape(d.EventID) + "/replay"
}

// Skip is where it is asked whether it is to be skipped.
func (d delivery) Skip() string {
	return d.Webhook.Page() + "/deliveries/" + strconv.FormatInt(d.Sequence, 10) + "/skip"
}

// Skippable reports whether it can be skipped.
func (d delivery) Skippable() bool { return d.State == webhook.Waiting }

// Verb is what sends it; empty: it is sent by itself, or can't be sent now.
func (d delivery) Verb() string {
	switch {
	case d.State != webhook.Waiting:
		return "Resend"
	case d.Reason == webhook.BeforeRetry:
		return "Send it now"
	}
	return ""
}

// First is the page of the event that comes before it; empty: it waits for none.
func (d delivery) First() string {
	if d.Reason != webhook.AfterEarlier {
		return ""
	}
	return eventPage(d.Earlier.Sequence)
}

// Wait is what it waits for, in a sentence; empty: First and Next say so, or it does not wait.
func (d delivery) Wait() string {
	switch d.Reason {
	case webhook.WebhookDisabled:
		return "Waiting for the webhook to be enabled."
	case webhook.InQueue:
		return "Waiting for its turn."
	case webhook.BeforeRetry, webhook.AfterEarlier:
	}
	return ""
}

// Class and Word are its state.
func (d delivery) Class() string {
	switch d.State {
	case webhook.Delivered:
		return "ok"
	case webhook.Failed:
		return "fault"
	case webhook.Skipped:
		return "off"
	case webhook.Waiting:
	}
	if len(d.Attempts) > 0 {
		return "warn"
	}
	return ""
}

func (d delivery) Word() string {
	switch d.State {
	case webhook.Delivered:
		return "Delivered"
	case webhook.Failed:
		return "Failed"
	case webhook.Skipped:
		return "Skipped"
	case webhook.Waiting:
	}
	return "Waiting"
}

// Next is when it is tried next, where that is known.
func (d delivery) Next() time.Time {
	if d.Reason != webhook.BeforeRetry {
		return time.Time{}
	}
	return d.NextAt
}

// Left is how many attempts are not shown.
func (d delivery) Left() int { return max(0, len(d.Attempts)-d.most) }

// Tries are the attempts that are shown, oldest first.
func (d delivery) Tries() []try {
	return shell.Each(d.Attempts[d.Left():], func(a webhook.Attempt) try { return try{a} })
}

// LastOutcome is what came of the last attempt, in a line.
func (d delivery) LastOutcome() string {
	if len(d.Attempts) == 0 {
		return ""
	}
	return try{d.Attempts[len(d.Attempts)-1]}.Outcome()
}

// try is one attempt as pages show it.
type try struct{ webhook.Attempt }

// Outcome is what came of it, in a line.
func (t try) Outcome() string {
	if t.Status == 0 {
		return t.Error
	}
	if text := http.StatusText(t.Status); text != "" {
		return strconv.Itoa(t.Status) + " " + text
	}
	return strconv.Itoa(t.Status)
}

// Took is how long it took.
func (t try) Took() string {
	switch {
	case t.Duration <= 0:
		return ""
	case t.Duration < time.Second:
		return strconv.FormatInt(max(1, t.Duration.Milliseconds()), 10) + " ms"
	}
	return strconv.FormatFloat(t.Duration.Seconds(), 'f', 1, 64) + " s"
}
