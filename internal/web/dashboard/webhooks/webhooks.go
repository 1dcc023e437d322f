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

func (s *room) route() {
	const sees, changes = access.SystemRead, access.SystemWrite
	s.Handle("GET "+shell.WebhooksPath, "", sees, s.listWebhooks)
	s.Handle("GET "+shell.WebhooksPath+"/new", "", changes, s.showNewWebhook)
	s.Handle("POST "+shell.WebhooksPath, "create-webhook", changes, s.createWebhook)
	s.Handle("POST "+shell.WebhooksPath+"/code", "", changes, s.showWebhookCode)
	s.Handle("GET "+webhookItem, "", sees, s.showWebhook)
	s.Handle("GET "+webhookItem+"/follow", "", sees, s.followWebhook)
	s.Handle("GET "+webhookItem+"/edit", "", changes, shell.With(s.webhookOf, s.showEditWebhook))
	s.Handle("POST "+webhookItem, "update-webhook", changes, shell.With(s.webhookOf, s.editWebhook))
	s.Handle("POST "+webhookItem+"/code", "", changes, shell.With(s.webhookOf, s.showEditWebhookCode))
	s.Handle("POST "+webhookItem+"/"+newSecret, "rotate-webhook-secret", changes, s.rotateSecret)
	s.Handle("POST "+webhookItem+"/replay", "replay-webhook", changes, s.replaySince)
	s.Handle("POST "+webhookItem+"/deliveries/{event}/replay", "replay-webhook-delivery", changes, s.replayEvent)
	s.Handle("GET "+webhookItem+"/deliveries/{sequence}/skip", "", changes, shell.With(s.deliveryOf, s.askSkip))
	s.Handle("POST "+webhookItem+"/deliveries/{sequence}/skip", "skip-webhook-delivery", changes, s.skipEvent)
	for name, a := range webhookActs {
		if a.Title != "" {
			s.Handle("GET "+webhookItem+"/"+name, "", changes, s.askWebhook(name))
		}
		if a.do != nil {
			s.Handle("POST "+webhookItem+"/"+name, a.operation, changes, s.actOnWebhook(name))
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

func (s *room) listWebhooks(r *shell.Request) (shell.View, error) {
	l := webhookList{Selection: shell.Select(r.URL.Query(), shell.WebhooksPath), May: r.Person.Permits(access.SystemWrite)}
	rows, err := shell.Paged(&l.Selection, func(page, limit int) ([]webhook.Webhook, error) {
		return s.Webhooks.List(r.Context(), r.Person.Environment.ID, page, limit)
	})
	for _, row := range rows {
		e := endpoint{Webhook: row, Now: s.Now()}
		if err == nil {
			err = s.counted(r.Context(), &e)
		}
		l.Rows = append(l.Rows, e)
	}
	return shell.Show("webhooks", l), err
}

// counted looks what has become of what was sent to a webhook.
func (s *room) counted(ctx context.Context, e *endpoint) error {
	count := func(state webhook.State) (string, error) {
		found, err := s.Webhooks.Deliveries(ctx, e.Environment, e.ID, webhook.DeliveryQuery{
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
	last, err := s.Webhooks.Deliveries(ctx, e.Environment, e.ID, webhook.DeliveryQuery{
		State: webhook.Delivered, Limit: 1,
	})
	if err == nil && len(last) > 0 && len(last[0].Attempts) > 0 {
		e.Last = last[0].Attempts[len(last[0].Attempts)-1].At
	}
	return err
}

// webhookOf reads the webhook that a request names.
func (s *room) webhookOf(r *shell.Request) (endpoint, error) {
	row, err := s.Webhooks.Get(r.Context(), r.Person.Environment.ID, webhookID(r))
	return endpoint{Webhook: row, Now: s.Now()}, err
}

func webhookID(r *shell.Request) id.Webhook { return id.Webhook(r.PathValue("webhook")) }
