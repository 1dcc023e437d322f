package api

import (
	"strconv"

	"millrace/internal/control/webhook"
)

// Webhook is an endpoint that events are sent to.
type Webhook struct {
	ID            string   `json:"id"`
	Address       string   `json:"address"`
	Enabled       bool     `json:"enabled" doc:"Also false after 24 hours without a successful delivery."`
	CreatedAt     string   `json:"created_at" format:"date-time"`
	EventTypes    []string `json:"event_types,omitempty" doc:"The event types to send. Empty: all."`
	SigningSecret string   `json:"signing_secret,omitempty" doc:"Only in the response that creates it; it can't be shown again."`
	FailingSince  string   `json:"failing_since,omitempty" format:"date-time" doc:"Since when no delivery has succeeded."`
}

// WebhookCreate asks for events to be sent to an address.
type WebhookCreate struct {
	Address    string   `json:"address,omitempty" required:"true" doc:"An http or https URL, unique in the environment."`
	EventTypes []string `json:"event_types,omitempty" doc:"The event types to send. Empty: all."`
	Enabled    *bool    `json:"enabled,omitempty" doc:"false: nothing is sent until it is enabled. Default: true, which sends events from now on."`
}

// WebhookUpdate changes what is given.
type WebhookUpdate struct {
	Address    *string            `json:"address,omitempty"`
	Enabled    *bool              `json:"enabled,omitempty" doc:"When enabled again, the webhook gets the events that were waiting and never tried, then new ones. Use replay for the events it missed."`
	EventTypes Optional[[]string] `json:"event_types,omitzero" doc:"An empty list or null means all."`
}

// WebhookReplay asks for events to be delivered again.
type WebhookReplay struct {
	Since string `json:"since,omitempty" required:"true" doc:"Events from this time on: RFC 3339, or seconds since the Unix epoch in a string." example:"2026-01-02T15:04:05Z"`
}

// WebhookReplayFailed asks for what failed to be delivered again.
type WebhookReplayFailed struct {
	Since string `json:"since,omitempty" doc:"Only events from this time on: RFC 3339, or seconds since the Unix epoch in a string." example:"2026-01-02T15:04:05Z"`
}

// WebhookResent is how many deliveries are made because they were asked for.
type WebhookResent struct {
	Deliveries int `json:"deliveries" doc:"The number of deliveries."`
}

// WebhookDelivery is one event for one webhook.
type WebhookDelivery struct {
	EventID   string         `json:"event_id"`
	EventType string         `json:"event_type"`
	Sequence  int64          `json:"sequence" doc:"The sequence number of the event."`
	Status    string         `json:"status" enum:"waiting,delivered,failed,skipped" doc:"waiting: being sent, to be retried, or behind an earlier event of its resource. failed: no longer retried. skipped: skipped by request."`
	Reason    string         `json:"waiting_reason,omitempty" enum:"webhook_disabled,earlier_event,retry,in_queue" doc:"Why it is waiting. webhook_disabled: until the webhook is enabled. earlier_event: until waiting_for_event is delivered, failed or skipped. retry: for the next attempt after a failed one. in_queue: for its turn."`
	Earlier   string         `json:"waiting_for_event,omitempty" doc:"The event_id of the same resource's earlier event."`
	Attempts  []EventAttempt `json:"attempts"`
	NextAt    string         `json:"next_attempt_at,omitempty" format:"date-time" doc:"When it will be sent again."`
}

func wireWebhook(w webhook.Webhook) Webhook {
	out := Webhook{
		ID:         string(w.ID),
		Address:    w.Address,
		Enabled:    w.Enabled,
		CreatedAt:  w.CreatedAt.UTC().Format(microseconds),
		EventTypes: w.Types,
	}
	if !w.FailingSince.IsZero() {
		out.FailingSince = w.FailingSince.UTC().Format(microseconds)
	}
	return out
}

// withSecret is a webhook where its secret is made.
func withSecret(w webhook.Webhook) Webhook {
	out := wireWebhook(w)
	out.SigningSecret = w.Secret
	return out
}

func (w WebhookCreate) input() webhook.CreateInput {
	return webhook.CreateInput{
		Address: w.Address, Types: w.EventTypes, Disabled: w.Enabled != nil && !*w.Enabled,
	}
}

func (w WebhookUpdate) input() webhook.PatchInput {
	return webhook.PatchInput{Address: w.Address, Enabled: w.Enabled, Types: w.EventTypes.Ptr()}
}

func wireDelivery(d webhook.Delivery) WebhookDelivery {
	out := WebhookDelivery{
		EventID: d.EventID, EventType: d.EventType, Sequence: d.Sequence, Status: string(d.State),
		Reason: string(d.Reason), Earlier: d.Earlier.ID, Attempts: wireAttempts(d.EventID, d.Attempts),
	}
	if d.State == webhook.Waiting && !d.NextAt.IsZero() {
		out.NextAt = d.NextAt.UTC().Format(microseconds)
	}
	return out
}

// Attempted is an event that is sent after earlier attempts.
func (e Event) Attempted(attempts []webhook.Attempt) Event {
	e.Attempts = wireAttempts(e.ID, attempts)
	return e
}

func wireAttempts(of string, attempts []webhook.Attempt) []EventAttempt {
	out := make([]EventAttempt, 0, len(attempts))
	for _, a := range attempts {
		out = append(out, EventAttempt{
			ID: of + "-" + string(a.Webhook) + "-" + strconv.Itoa(a.Number), WebhookID: string(a.Webhook),
			Address:   a.Address,
			CreatedAt: a.At.UTC().Format(microseconds), MaxAttempts: webhook.MaxAttempts,
			Status: a.Status, Headers: a.Headers, Body: a.Body, Error: a.Error, Duration: a.Duration.Milliseconds(),
		})
	}
	return out
}
