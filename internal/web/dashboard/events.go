package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	eventsPath  = Path + "/events"
	maxWebhooks = 100 // there are no more in an environment
)

func (s *server) routeEvents(mux *http.ServeMux) {
	mux.Handle("GET "+eventsPath, s.person("", access.SystemRead, s.listEvents))
	mux.Handle("GET "+eventsPath+"/{sequence}", s.person("", access.SystemRead, s.showEvent))
}

// happened is an event as pages show it.
type happened struct {
	event.Event

	standings []webhook.Standing // at the webhooks that it was sent to or waits for, or that want such events now
}

// Page is the address of its page.
func (h happened) Page() string { return eventPage(h.Sequence) }

func eventPage(sequence int64) string { return eventsPath + "/" + strconv.FormatInt(sequence, 10) }

// Of is the address of the page of what it is about, or of what that is a part of; empty: there is none.
func (h happened) Of() string {
	switch h.ObjectKind {
	case live.EventObject, live.EventTargetObject:
		return livePath + "/" + url.PathEscape(h.Resource)
	case asset.EventObject, asset.EventTrackObject, asset.EventFileObject:
		return assetsPath + "/" + url.PathEscape(h.Resource)
	case webhook.EventObject:
		return webhooksPath + "/" + url.PathEscape(h.ObjectID)
	}
	return ""
}

// eventList is the page of what happened.
type eventList struct {
	Type, Object string // those that are shown alone; empty: all
	Before       int64  // those before this one; 0: from the newest on
	Groups       []typeGroup
	Rows         []happened
	Older        string // the address of those before; empty: there are none
}

// Filtered reports whether some are left out.
func (l eventList) Filtered() bool { return l.Type != "" || l.Object != "" }

// Newest is the address of the newest that fit.
func (l eventList) Newest() string { return l.address(0) }

func (l eventList) address(before int64) string {
	q := url.Values{}
	for name, value := range map[string]string{"type": l.Type, "object_id": l.Object} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if before > 0 {
		q.Set("before", strconv.FormatInt(before, 10))
	}
	if len(q) == 0 {
		return eventsPath
	}
	return eventsPath + "?" + q.Encode()
}

func (s *server) listEvents(w http.ResponseWriter, r *http.Request, p access.Person) {
	l := s.readEvents(r.URL.Query())
	q := event.Query{
		Environment: p.Environment.ID, Object: l.Object, Before: l.Before, NewestFirst: true, Limit: perPage,
	}
	if l.Type != "" {
		q.Types = []string{l.Type}
	}
	found, err := s.Events.ListEvents(r.Context(), q)
	if err == nil {
		l.Rows, err = s.standing(r.Context(), p.Environment.ID, found)
	}
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	if len(found) == perPage {
		l.Older = l.address(found[perPage-1].Sequence)
	}
	s.render(w, r, p, http.StatusOK, "events", l)
}

// readEvents reads what a query asks for; what can't be counts as not asked for.
func (s *server) readEvents(q url.Values) eventList {
	l := eventList{Type: q.Get("type"), Object: find(url.Values{"q": q["object_id"]}, eventsPath).Query}
	if !slices.Contains(s.EventTypes, l.Type) {
		l.Type = ""
	}
	l.Before, _ = strconv.ParseInt(q.Get("before"), 10, 64) // what is none counts as none
	l.Before = max(l.Before, 0)
	l.Groups = grouped(s.EventTypes, []string{l.Type})
	return l
}

// standing puts to events how far they have come at the webhooks.
func (s *server) standing(ctx context.Context, env id.Environment, found []event.Event) ([]happened, error) {
	standings, err := s.Events.Standings(ctx, env, found)
	out := make([]happened, 0, len(found))
	for _, e := range found {
		out = append(out, happened{e, standings[e.Sequence]})
	}
	return out, err
}

// eventPageOf is the page of an event.
type eventPageOf struct {
	happened

	Payload    string
	May        bool       // the person may have it sent again
	Deliveries []delivery // to the webhooks that it was sent to, or waits for
	Others     []delivery // to those that are enabled beside
}

func (s *server) showEvent(w http.ResponseWriter, r *http.Request, p access.Person) {
	sequence, err := strconv.ParseInt(r.PathValue("sequence"), 10, 64)
	if err != nil || sequence < 1 {
		s.notFound(w, r, p)
		return
	}
	v, err := s.eventPage(r.Context(), p, sequence)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	s.render(w, r, p, http.StatusOK, "event", v)
}

func (s *server) eventPage(ctx context.Context, p access.Person, sequence int64) (eventPageOf, error) {
	found, err := s.Events.ListEvents(ctx, event.Query{
		Environment: p.Environment.ID, After: sequence - 1, Limit: 1,
	})
	if err != nil {
		return eventPageOf{}, err
	}
	if len(found) == 0 || found[0].Sequence != sequence {
		return eventPageOf{}, fault.New(fault.NotFound, "the event does not exist")
	}
	v := eventPageOf{happened: happened{Event: found[0]}, May: p.Permits(access.SystemWrite)}
	text, err := s.ShowEvent(ctx, v.Event)
	var b bytes.Buffer
	if err == nil {
		err = json.Indent(&b, text, "", "  ")
	}
	if v.Payload = b.String(); err != nil {
		return eventPageOf{}, err
	}
	hooks, err := s.Webhooks.List(ctx, p.Environment.ID, 1, maxWebhooks)
	if err != nil {
		return eventPageOf{}, err
	}
	for _, h := range hooks {
		if err = s.addDelivery(ctx, &v, endpoint{Webhook: h, Now: s.Now()}); err != nil {
			return eventPageOf{}, err
		}
	}
	return v, nil
}

// addDelivery looks what has become of an event at one webhook.
func (s *server) addDelivery(ctx context.Context, v *eventPageOf, e endpoint) error {
	found, err := s.Webhooks.Deliveries(ctx, e.Environment, e.ID, webhook.DeliveryQuery{
		Before: v.Sequence + 1, Limit: 1,
	})
	if err != nil {
		return err
	}
	if len(found) == 1 && found[0].Sequence == v.Sequence {
		v.Deliveries = append(v.Deliveries, delivery{Delivery: found[0], Webhook: e, most: allTries})
		return nil
	}
	if e.Enabled && v.Type != webhook.EventTest { // a test event is for one webhook alone
		v.Others = append(v.Others, delivery{
			Delivery: webhook.Delivery{Sequence: v.Sequence, EventID: v.ID, EventType: v.Type}, Webhook: e,
		})
	}
	return nil
}

// hookRow is one webhook on the page of an event.
type hookRow struct {
	D          delivery
	May        bool // the person may have it sent
	Back, Verb string
}

// Shown are the webhooks that it was sent to, then the others.
func (v eventPageOf) Shown() []hookRow {
	var out []hookRow
	for _, d := range v.Deliveries {
		out = append(out, hookRow{d, v.May, v.Page(), "Send it again"})
	}
	for _, d := range v.Others {
		out = append(out, hookRow{d, v.May, v.Page(), "Send it"})
	}
	return out
}
