package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

const (
	maxWebhooks = 100 // there are no more in an environment
)

func (el *eventLog) route() {
	el.Handle("GET "+shell.EventsPath, "", access.SystemRead, el.listEvents)
	el.Handle("GET "+shell.EventsPath+"/follow", "", access.SystemRead, shell.FollowList(el.rows, el.findEvents))
	el.Handle("GET "+shell.EventsPath+"/{sequence}", "", access.SystemRead, el.showEvent)
}

// loggedEvent is an event as pages show it.
type loggedEvent struct {
	event.Event

	standings []webhook.Standing // at the webhooks that it was sent to or waits for, or that want such events now
}

// Page is the address of its page.
func (l loggedEvent) Page() string { return eventPage(l.Sequence) }

func eventPage(sequence int64) string {
	return shell.EventsPath + "/" + strconv.FormatInt(sequence, 10)
}

// eventKey names the row of an event: its sequence.
type eventKey string

func keyOf(sequence int64) eventKey { return eventKey(strconv.FormatInt(sequence, 10)) }

// Of is the address of the page of what it is about, or of what that is a part of; empty: there is none.
func (l loggedEvent) Of() string {
	switch l.ObjectKind {
	case live.EventObject, live.EventTargetObject:
		return shell.LivePath + "/" + url.PathEscape(l.Resource)
	case asset.EventObject, asset.EventTrackObject, asset.EventFileObject:
		return shell.AssetsPath + "/" + url.PathEscape(l.Resource)
	case webhook.EventObject:
		return shell.WebhooksPath + "/" + url.PathEscape(l.ObjectID)
	}
	return ""
}

// eventList is the page of what happened: its finding has a type as the state, and the ID of an object as the query.
type eventList struct {
	shell.Selection

	Groups []typeGroup
	Rows   []loggedEvent
	Older  string // the address of those before; empty: there are none
}

// Newest is the address of the newest that fit, Self that of the page.
func (e eventList) Newest() string { return e.before(0) }
func (e eventList) Self() string   { return e.before(e.Before) }

// New is empty: a page that is loaded has what is new.
func (e eventList) New() string { return "" }

// Follow is the address of the events that change the page.
func (e eventList) Follow() string { return shell.FollowAddress(e.Selection, e.Rows, loggedEvent.Row) }

func (e eventList) before(sequence int64) string {
	e.Before = sequence
	return e.Address(1)
}

func (el *eventLog) listEvents(r *shell.Request) (shell.View, error) {
	l, err := el.events(r.Context(), r.Person, el.findEvents(r))
	if err != nil {
		return shell.View{}, err
	}
	l.Groups = grouped(el.EventTypes, []string{l.Status})
	return shell.Show("events", l), nil
}

// findEvents reads what a request asks for; what can't be counts as not asked for.
func (el *eventLog) findEvents(r *shell.Request) shell.Selection {
	asked := r.URL.Query()
	f := shell.Select(url.Values{"status": asked["type"], "q": asked["object_id"]}, shell.EventsPath, el.EventTypes...)
	f.Names = [2]string{"type", "object_id"}
	f.Before, _ = strconv.ParseInt(asked.Get("before"), 10, 64) // what is none counts as none
	f.Before = max(f.Before, 0)
	return f
}

// events reads what the page of the log shows.
func (el *eventLog) events(ctx context.Context, p access.Person, f shell.Selection) (eventList, error) {
	l := eventList{Selection: f}
	q := event.Query{
		Environment: p.Environment.ID, Object: f.Query, Before: f.Before, NewestFirst: true, Limit: shell.PerPage,
	}
	if f.Status != "" {
		q.Types = []string{f.Status}
	}
	found, err := el.Events.ListEvents(ctx, q)
	if err != nil {
		return l, err
	}
	if len(found) == shell.PerPage {
		l.Older = l.before(found[shell.PerPage-1].Sequence)
	}
	l.Rows, err = el.standing(ctx, p.Environment.ID, found)
	return l, err
}

// someEvents reads events by their rows.
func (el *eventLog) someEvents(ctx context.Context, env id.Environment, keys []eventKey) ([]loggedEvent, error) {
	var sequences []int64
	for _, k := range keys {
		if n, err := strconv.ParseInt(string(k), 10, 64); err == nil { // else there is none
			sequences = append(sequences, n)
		}
	}
	if len(sequences) == 0 {
		return nil, nil
	}
	found, err := el.Events.ListEvents(ctx, event.Query{
		Environment: env, Sequences: sequences, Limit: len(sequences),
	})
	if err != nil {
		return nil, err
	}
	return el.standing(ctx, env, found)
}

// standing puts to events how far they have come at the webhooks.
func (el *eventLog) standing(ctx context.Context, env id.Environment, found []event.Event) ([]loggedEvent, error) {
	standings, err := el.Events.Standings(ctx, env, found)
	out := make([]loggedEvent, 0, len(found))
	for _, e := range found {
		out = append(out, loggedEvent{e, standings[e.Sequence]})
	}
	return out, err
}

// eventPageOf is the page of an event.
type eventPageOf struct {
	loggedEvent

	Payload    string
	May        bool       // the person may have it sent again
	Deliveries []delivery // to the webhooks that it was sent to, or waits for
	Others     []delivery // to those that are enabled beside
}

func (el *eventLog) showEvent(r *shell.Request) (shell.View, error) {
	sequence, err := strconv.ParseInt(r.PathValue("sequence"), 10, 64)
	if err != nil || sequence < 1 {
		return shell.View{}, shell.ErrNothing
	}
	v, err := el.eventPage(r.Context(), r.Person, sequence)
	return shell.Show("event", v), err
}

func (el *eventLog) eventPage(ctx context.Context, p access.Person, sequence int64) (eventPageOf, error) {
	found, err := el.Events.ListEvents(ctx, event.Query{
		Environment: p.Environment.ID, After: sequence - 1, Limit: 1,
	})
	if err != nil {
		return eventPageOf{}, err
	}
	if len(found) == 0 || found[0].Sequence != sequence {
		return eventPageOf{}, fault.New(fault.NotFound, "the event does not exist")
	}
	v := eventPageOf{loggedEvent: loggedEvent{Event: found[0]}, May: p.Permits(access.SystemWrite)}
	text, err := el.ShowEvent(ctx, v.Event)
	var b bytes.Buffer
	if err == nil {
		err = json.Indent(&b, text, "", "  ")
	}
	if v.Payload = b.String(); err != nil {
		return eventPageOf{}, err
	}
	hooks, err := el.Webhooks.List(ctx, p.Environment.ID, 1, maxWebhooks)
	if err != nil {
		return eventPageOf{}, err
	}
	for _, h := range hooks {
		if err = el.addDelivery(ctx, &v, endpoint{Webhook: h, Now: el.Now()}); err != nil {
			return eventPageOf{}, err
		}
	}
	return v, nil
}

// addDelivery looks what has become of an event at one webhook.
func (el *eventLog) addDelivery(ctx context.Context, v *eventPageOf, e endpoint) error {
	found, err := el.Webhooks.Deliveries(ctx, e.Environment, e.ID, webhook.DeliveryQuery{
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

// Skip is where it is asked whether it is to be skipped; empty: it can't be, or not by the person.
func (h hookRow) Skip() string {
	if !h.May || !h.D.Skippable() {
		return ""
	}
	return h.D.Skip()
}

// Shown are the webhooks that it was sent to, then the others.
func (e eventPageOf) Shown() []hookRow {
	var out []hookRow
	for _, d := range e.Deliveries {
		out = append(out, hookRow{d, e.May, e.Page(), d.Verb()})
	}
	for _, d := range e.Others {
		out = append(out, hookRow{d, e.May, e.Page(), "Send it"})
	}
	return out
}

// Class and Word are how far an event has come, at all webhooks taken together: what is wrong is said first, then what
// is still to come.
func (l loggedEvent) Class() string {
	class, _ := l.standing()
	return class
}

func (l loggedEvent) Word() string {
	_, word := l.standing()
	return word
}

func (l loggedEvent) standing() (class, word string) {
	is := func(state webhook.State, tried bool) bool {
		return slices.ContainsFunc(l.standings, func(s webhook.Standing) bool {
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
	case len(l.standings) > 0:
		return "off", "Not sent" // to those that were made, enabled or changed after it
	}
	return "off", "No webhook wants it"
}

// Waits reports whether it is still to be sent to a webhook.
func (l loggedEvent) Waits() bool {
	return slices.ContainsFunc(l.standings, func(s webhook.Standing) bool { return s.State == webhook.Waiting })
}

// Next is when the first of those attempts is made that are known; zero: none is.
func (l loggedEvent) Next() (at time.Time) {
	for _, s := range l.standings {
		if s.State == webhook.Waiting && !s.NextAt.IsZero() && (at.IsZero() || s.NextAt.Before(at)) {
			at = s.NextAt
		}
	}
	return at
}

// Row, Name, Made, Moves and MadeOf are those of a row. Clocks of nodes differ: the order of events is that of their
// sequence.
func (l loggedEvent) Row() eventKey   { return keyOf(l.Sequence) }
func (l loggedEvent) Name() string    { return l.Type }
func (l loggedEvent) Made() time.Time { return time.Unix(l.Sequence, 0) }
func (l loggedEvent) Moves() bool     { return l.Waits() }
func (loggedEvent) MadeOf() id.Upload { return "" }

// eventSource has the rows of the event log. Each event is a new row. That a webhook got it, or did not, is no event.
type eventSource struct {
	*eventLog
	shell.Uncounted
}

// About implements source.
func (eventSource) About(h shell.Change) eventKey { return keyOf(h.Sequence) }

// Load implements source.
func (e eventSource) Load(ctx context.Context, p access.Person, f shell.Selection) (shell.Loaded[loggedEvent], error) {
	l, err := e.events(ctx, p, f)
	return shell.Loaded[loggedEvent]{Selection: l.Selection, Rows: l.Rows}, err
}

// Some implements source.
func (e eventSource) Some(ctx context.Context, env id.Environment, keys []eventKey) ([]loggedEvent, error) {
	return e.someEvents(ctx, env, keys)
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
