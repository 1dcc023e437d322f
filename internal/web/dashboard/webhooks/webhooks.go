package webhooks

import (
	"context"
	"net/url"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

const (
	webhookItem = shell.WebhooksPath + "/{webhook}"
	maxCounted  = 20 // deliveries that the list of webhooks counts for each
)

func (rm *room) route() {
	const sees, changes = access.SystemRead, access.SystemWrite
	rm.Handle("GET "+shell.WebhooksPath, "", sees, rm.listWebhooks)
	rm.Handle("GET "+shell.WebhooksPath+"/new", "", changes, rm.showNewWebhook)
	rm.Handle("POST "+shell.WebhooksPath, "create-webhook", changes, rm.createWebhook)
	rm.Handle("POST "+shell.WebhooksPath+"/code", "", changes, rm.showWebhookCode)
	rm.Handle("GET "+webhookItem, "", sees, rm.showWebhook)
	rm.Handle("GET "+webhookItem+"/follow", "", sees, rm.followWebhook)
	rm.Handle("GET "+webhookItem+"/edit", "", changes, shell.With(rm.webhookOf, rm.showEditWebhook))
	rm.Handle("POST "+webhookItem, "update-webhook", changes, shell.With(rm.webhookOf, rm.editWebhook))
	rm.Handle("POST "+webhookItem+"/code", "", changes, shell.With(rm.webhookOf, rm.showEditWebhookCode))
	rm.Handle("POST "+webhookItem+"/"+newSecret, "rotate-webhook-secret", changes, rm.rotateSecret)
	rm.Handle("POST "+webhookItem+"/replay", "replay-webhook", changes, rm.replaySince)
	rm.Handle("POST "+webhookItem+"/deliveries/{event}/replay", "replay-webhook-delivery", changes, rm.replayEvent)
	rm.Handle("GET "+webhookItem+"/deliveries/{sequence}/skip", "", changes, shell.With(rm.deliveryOf, rm.askSkip))
	rm.Handle("POST "+webhookItem+"/deliveries/{sequence}/skip", "skip-webhook-delivery", changes, rm.skipEvent)
	for name, a := range webhookActs {
		if a.Title != "" {
			rm.Handle("GET "+webhookItem+"/"+name, "", changes, rm.askWebhook(name))
		}
		if a.do != nil {
			rm.Handle("POST "+webhookItem+"/"+name, a.operation, changes, rm.actOnWebhook(name))
		}
	}
}

// endpoint is a webhook as pages show it.
type endpoint struct {
	webhook.Webhook

	Now             time.Time
	Waiting, Failed string    // how many deliveries are; empty: none
	Last            time.Time // when an event was delivered last; zero: none was
}

// Page is the address of its page. Its Address is where events are sent to.
func (e endpoint) Page() string { return shell.WebhooksPath + "/" + url.PathEscape(string(e.ID)) }

// Failing reports whether nothing could be delivered since FailingSince.
func (e endpoint) Failing() bool { return !e.FailingSince.IsZero() }

// Stopped reports whether it was disabled because of what it responded, or did not.
func (e endpoint) Stopped() bool { return !e.Enabled && e.Failing() }

// Refused reports whether it was disabled because it wants no more events: it had not failed for long enough.
func (e endpoint) Refused() bool {
	return e.Stopped() && e.UpdatedAt.Sub(e.FailingSince) < webhook.Patience
}

// Ends is when it is disabled if nothing can be delivered until then.
func (e endpoint) Ends() time.Time { return e.FailingSince.Add(webhook.Patience) }

// Two reports whether the secret before this one signs too.
func (e endpoint) Two() bool { return e.OldSecret != "" && e.Now.Before(e.OldUntil) }

// webhookList is the page of the webhooks of the environment.
type webhookList struct {
	shell.Selection

	Rows []endpoint
	May  bool // the person may make and change them
}

func (rm *room) listWebhooks(r *shell.Request) (shell.View, error) {
	l := webhookList{
		Selection: shell.Select(r.URL.Query(), shell.WebhooksPath),
		May:       r.Person.Permits(access.SystemWrite),
	}
	rows, err := shell.Paged(&l.Selection, func(page, limit int) ([]webhook.Webhook, error) {
		return rm.Webhooks.List(r.Context(), r.Person.Environment.ID, page, limit)
	})
	for _, row := range rows {
		e := endpoint{Webhook: row, Now: rm.Now()}
		if err == nil {
			err = rm.counted(r.Context(), &e)
		}
		l.Rows = append(l.Rows, e)
	}
	return shell.Show("webhooks", l), err
}

// counted looks what has become of what was sent to a webhook.
func (rm *room) counted(ctx context.Context, e *endpoint) error {
	count := func(state webhook.State) (string, error) {
		found, err := rm.Webhooks.Deliveries(ctx, e.Environment, e.ID, webhook.DeliveryQuery{
			State: state, Limit: maxCounted + 1,
		})
		return shell.AtMost(len(found), maxCounted), err
	}
	var err error
	if e.Waiting, err = count(webhook.Waiting); err != nil {
		return err
	}
	if e.Failed, err = count(webhook.Failed); err != nil || e.Failing() {
		return err // where much waits, the last one that was delivered is far back
	}
	last, err := rm.Webhooks.Deliveries(ctx, e.Environment, e.ID, webhook.DeliveryQuery{
		State: webhook.Delivered, Limit: 1,
	})
	if err == nil && len(last) > 0 && len(last[0].Attempts) > 0 {
		e.Last = last[0].Attempts[len(last[0].Attempts)-1].At
	}
	return err
}

// webhookOf reads the webhook that a request names.
func (rm *room) webhookOf(r *shell.Request) (endpoint, error) {
	row, err := rm.Webhooks.Get(r.Context(), r.Person.Environment.ID, webhookID(r))
	return endpoint{Webhook: row, Now: rm.Now()}, err
}

func webhookID(r *shell.Request) id.Webhook { return id.Webhook(r.PathValue("webhook")) }
