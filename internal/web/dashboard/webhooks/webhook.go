package webhooks

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

const maxDeliveries = 20 // that the page of a webhook shows at a time

// webhookPage is the page of a webhook.
type webhookPage struct {
	endpoint

	May        bool   // the person may change it
	Since      string // what is typed into the form that sends events again
	Status     string // deliveries of this state alone; empty: all
	Before     int64  // deliveries before this event; 0: from the newest on
	Deliveries []delivery
	Pauses     bool   // something waits for its next attempt
	Older      string // the address of the deliveries before these; empty: there are none
	Follow     string // the address of the events that change the page
	shell.FormErrors
}

func (rm *room) showWebhook(r *shell.Request) (shell.View, error) {
	v, err := rm.webhookPage(r.Context(), r.Person, webhookID(r), r.URL.Query())
	return shell.Show("webhook", v), err
}

// webhookPage reads all that the page shows, of what a query asks for.
func (rm *room) webhookPage(ctx context.Context, p access.Person, of id.Webhook, q url.Values) (webhookPage, error) {
	row, err := rm.Webhooks.Get(ctx, p.Environment.ID, of)
	if err != nil {
		return webhookPage{}, err
	}
	v := webhookPage{
		endpoint: endpoint{Webhook: row, Now: rm.Now()}, May: p.Permits(access.SystemWrite),
	}
	v.Status = shell.Select(q, "", deliveryStates...).Status
	v.Before, _ = strconv.ParseInt(q.Get("before"), 10, 64) // what is none counts as none
	v.Before = max(v.Before, 0)
	v.Since = v.Now.Add(-time.Hour).UTC().Format(sinceForm)
	if at, ok := sinceOf(q.Get("since")); ok {
		v.Since = at.UTC().Format(sinceForm)
	}
	found, err := rm.Webhooks.Deliveries(ctx, p.Environment.ID, of, webhook.DeliveryQuery{
		State: webhook.State(v.Status), Before: v.Before, Limit: maxDeliveries,
	})
	if err != nil {
		return webhookPage{}, err
	}
	for _, d := range found {
		v.Deliveries = append(v.Deliveries, delivery{Delivery: d, Webhook: v.endpoint, most: maxTries})
	}
	if len(found) == maxDeliveries {
		v.Older = v.shows(v.Status, found[len(found)-1].Sequence)
	}
	if err = rm.canResend(ctx, &v); err != nil {
		return webhookPage{}, err
	}
	v.Follow = v.Page() + "/follow" + v.query(v.Status, v.Before)
	return v, nil
}

// shows is the address of deliveries of a state before an event.
func (w webhookPage) shows(status string, before int64) string {
	return w.Page() + w.query(status, before) + "#deliveries"
}

// Shows is the address of the newest deliveries of a state, Self that of those that are shown.
func (w webhookPage) Shows(status string) string { return w.shows(status, 0) }
func (w webhookPage) Self() string               { return w.shows(w.Status, w.Before) }

// States are those that the deliveries can be narrowed to.
func (webhookPage) States() []choice {
	return []choice{
		{"", "All"},
		{string(webhook.Waiting), "Waiting"},
		{string(webhook.Failed), "Failed"},
		{string(webhook.Delivered), "Delivered"},
		{string(webhook.Skipped), "Skipped"},
	}
}

// deliveryStates are those of the addresses.
var deliveryStates = []string{ //nolint:gochecknoglobals // a constant
	string(webhook.Waiting), string(webhook.Failed), string(webhook.Delivered), string(webhook.Skipped),
}

// choice is one of several, of which one is chosen.
type choice struct{ Value, Name string }

func (w webhookPage) query(status string, before int64) string {
	q := url.Values{}
	if status != "" {
		q.Set("status", status)
	}
	if before > 0 {
		q.Set("before", strconv.FormatInt(before, 10))
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// sinceForm is how a time is shown in a field; it is in UTC.
const sinceForm = "2006-01-02 15:04"

// sinceOf reads a time that is typed: in UTC, or with its zone.
func sinceOf(text string) (time.Time, bool) {
	for _, form := range []string{sinceForm, "2006-01-02", "2006-01-02T15:04", time.RFC3339} {
		if at, err := time.Parse(form, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// replaySince has everything since a time sent again.
func (rm *room) replaySince(r *shell.Request) (shell.View, error) {
	v, err := rm.webhookPage(r.Context(), r.Person, webhookID(r), url.Values{})
	if err != nil {
		return shell.View{}, err
	}
	v.Since = r.Text("since")
	since, ok := sinceOf(v.Since)
	if !ok {
		v.Add("since", "This must be a time, as 2026-01-02 15:04 in UTC, or with its zone.")
		return shell.ShowAs(http.StatusBadRequest, "webhook", v), nil
	}
	if _, err = rm.Webhooks.ReplaySince(r.Context(), r.Person.Environment.ID, v.ID, since); err != nil {
		return shell.View{}, err
	}
	return shell.Redirect(v.shows("", 0)), nil
}
