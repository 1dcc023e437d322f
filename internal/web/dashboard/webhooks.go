package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
)

const (
	webhooksPath = Path + "/webhooks"
	webhookItem  = webhooksPath + "/{webhook}"
	maxCounted   = 20 // deliveries that the list of webhooks counts for each
)

func (s *server) routeWebhooks(mux *http.ServeMux) {
	const sees, changes = access.SystemRead, access.SystemWrite
	mux.Handle("GET "+webhooksPath, s.person("", sees, s.listWebhooks))
	mux.Handle("GET "+webhooksPath+"/new", s.person("", changes, s.showNewWebhook))
	mux.Handle("POST "+webhooksPath, s.person("create-webhook", changes, s.createWebhook))
	mux.Handle("POST "+webhooksPath+"/code", s.person("", changes, s.showWebhookCode))
	mux.Handle("GET "+webhookItem, s.person("", sees, s.showWebhook))
	mux.Handle("GET "+webhookItem+"/follow", s.person("", sees, s.followWebhook))
	mux.Handle("GET "+webhookItem+"/edit", s.person("", changes, s.showEditWebhook))
	mux.Handle("POST "+webhookItem, s.person("update-webhook", changes, s.editWebhook))
	mux.Handle("POST "+webhookItem+"/code", s.person("", changes, s.showEditWebhookCode))
	mux.Handle("POST "+webhookItem+"/"+newSecret, s.person("rotate-webhook-secret", changes, s.rotateSecret))
	mux.Handle("POST "+webhookItem+"/replay", s.person("replay-webhook", changes, s.replaySince))
	mux.Handle("POST "+webhookItem+"/deliveries/{event}/replay",
		s.person("replay-webhook-delivery", changes, s.replayEvent))
	mux.Handle("GET "+webhookItem+"/deliveries/{sequence}/skip", s.person("", changes, s.askSkip))
	mux.Handle("POST "+webhookItem+"/deliveries/{sequence}/skip",
		s.person("skip-webhook-delivery", changes, s.skipEvent))
	for name, a := range webhookActs {
		if a.Title != "" {
			mux.Handle("GET "+webhookItem+"/"+name, s.person("", changes, s.askWebhook(name)))
		}
		if a.do != nil {
			mux.Handle("POST "+webhookItem+"/"+name, s.person(a.operation, changes, s.actOnWebhook(name)))
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
func (e endpoint) Page() string { return webhooksPath + "/" + url.PathEscape(string(e.ID)) }

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
	finding

	Rows []endpoint
	May  bool // the person may make and change them
}

func (s *server) listWebhooks(r *request) (view, error) {
	l := webhookList{finding: find(r.URL.Query(), webhooksPath), May: r.Person.Permits(access.SystemWrite)}
	rows, err := paged(&l.finding, func(page, limit int) ([]webhook.Webhook, error) {
		return s.Webhooks.List(r.Context(), r.Person.Environment.ID, page, limit)
	})
	for _, row := range rows {
		e := endpoint{Webhook: row, Now: s.Now()}
		if err == nil {
			err = s.counted(r.Context(), &e)
		}
		l.Rows = append(l.Rows, e)
	}
	return show("webhooks", l), err
}

// counted looks what has become of what was sent to a webhook.
func (s *server) counted(ctx context.Context, e *endpoint) error {
	count := func(state webhook.State) (string, error) {
		found, err := s.Webhooks.Deliveries(ctx, e.Environment, e.ID, webhook.DeliveryQuery{
			State: state, Limit: maxCounted + 1,
		})
		return atMost(len(found), maxCounted), err
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
func (s *server) webhookOf(r *request) (endpoint, error) {
	row, err := s.Webhooks.Get(r.Context(), r.Person.Environment.ID, webhookID(r))
	return endpoint{Webhook: row, Now: s.Now()}, err
}

func webhookID(r *request) id.Webhook { return id.Webhook(r.PathValue("webhook")) }
