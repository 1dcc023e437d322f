package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/follow"
)

const (
	eventTag   = "Events"
	eventPath  = "/system/v1/events"
	followPath = eventPath + "/stream"
)

// EventLog reads what happened.
type EventLog interface {
	ListEvents(ctx context.Context, q event.Query) ([]event.Event, error)
	// AttemptsOf are those to deliver events, by their sequences, to any webhook, oldest first; at most `most` of an
	// event, the newest.
	AttemptsOf(ctx context.Context, sequences []int64, most int) (map[int64][]webhook.Attempt, error)
	// LastEvent is the sequence of the newest event.
	LastEvent(ctx context.Context) (int64, error)
	// FirstEvent is the sequence of the oldest event that is kept; of the next one where none is.
	FirstEvent(ctx context.Context) (int64, error)
	// News is closed when events have come that can be read; it is taken before they are.
	News() <-chan struct{}
}

// events are the operations of what happened: to list it, and to follow it.
type events struct {
	shell     *server
	log       EventLog
	form      EventForm
	followers *follow.Places[id.Environment, struct{}]
}

func (e events) register(on *server) {
	handle(on, route{
		method:     http.MethodGet,
		path:       eventPath,
		id:         "list-events",
		tag:        eventTag,
		permission: systemRead,
		summary:    "List events",
		text: "Newest first, or oldest first with order=asc; next_cursor is then always present, and can be " +
			"used later to get the events since.",
	}, e.list)
	handle(on, route{
		method:     http.MethodGet,
		path:       followPath,
		id:         "stream-events",
		tag:        eventTag,
		permission: systemRead,
		summary:    "Follow events",
		text: "An endless stream of server-sent events: id is the event's sequence, data the event. " +
			"Last-Event-ID or after resumes after an event; without them the stream starts with the next event.",
	}, e.stream)
}

// EventFilter selects events; exported for huma, which reads embedded fields of exported types only.
type EventFilter struct {
	Type   string `query:"type" doc:"Event types, separated by commas."`
	Object string `query:"object_id" doc:"Events of this object and of its parts."`
}

const (
	maxTypes = 20
	// maxShown is how many attempts are shown of an event in a list.
	maxShown = 20
)

func (e EventFilter) query(ctx context.Context, problems *fault.List) event.Query {
	q := event.Query{Environment: environment(ctx), Object: e.Object}
	if e.Type != "" {
		q.Types = strings.Split(e.Type, ",")
	}
	if len(q.Types) > maxTypes {
		problems.At("type", "may name at most %d types", maxTypes)
	}
	return q
}

// EventListResponse is the envelope of a list of events.
type EventListResponse struct {
	Data       []Event `json:"data"`
	NextCursor *string `json:"next_cursor" nullable:"true" doc:"The cursor of the next page; null on the last page of newest first."`
}

type listEventsInput struct {
	EventFilter

	Since  string    `query:"since" doc:"Events from this time on: RFC 3339, or seconds since the Unix epoch."`
	Until  string    `query:"until" doc:"Events before this time."`
	Order  string    `query:"order" enum:"asc,desc" default:"desc" doc:"desc: newest first. asc: oldest first."`
	Cursor string    `query:"cursor" doc:"The next_cursor of the previous response; with order=asc, the sequence of an event works too."`
	Limit  pageLimit `query:"limit" doc:"Events per page, from 1 to 100."`
}

type listEventsOutput struct{ Body EventListResponse }

func (e events) list(ctx context.Context, in *listEventsInput) (*listEventsOutput, error) {
	var problems fault.List
	q := in.query(ctx, &problems)
	q.Since, q.Until = moment(&problems, "since", in.Since), moment(&problems, "until", in.Until)
	q.NewestFirst = in.Order != "asc"
	if in.Order != "" && in.Order != "asc" && in.Order != "desc" {
		problems.At("order", "must be one of: asc, desc")
	}
	q.Limit = readNumber(&problems, "limit", string(in.Limit), maxLimit, defaultLimit)
	cursor := readSequence(&problems, "cursor", in.Cursor)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	last := int64(0)
	if q.NewestFirst {
		q.Before = cursor
	} else {
		q.After = cursor
		var err error
		if last, err = e.checkCursor(ctx, "cursor", cursor); err != nil {
			return nil, err
		}
	}
	found, err := e.log.ListEvents(ctx, q)
	if err != nil {
		return nil, err
	}
	sequences := make([]int64, 0, len(found))
	for _, ev := range found {
		sequences = append(sequences, ev.Sequence)
	}
	attempts, err := e.log.AttemptsOf(ctx, sequences, maxShown)
	if err != nil {
		return nil, err
	}
	out := EventListResponse{Data: make([]Event, 0, len(found))}
	form := e.form.page()
	for _, ev := range found {
		shown, err := form.Show(ctx, ev)
		if err != nil {
			return nil, err
		}
		out.Data = append(out.Data, shown.Attempted(attempts[ev.Sequence]))
		cursor = ev.Sequence
	}
	if !q.NewestFirst && len(found) < q.Limit && q.Until.IsZero() {
		cursor = max(cursor, last) // nothing for this client is up to there: its cursor stays among those that are kept
	}
	if !q.NewestFirst || len(found) == q.Limit {
		next := strconv.FormatInt(cursor, 10)
		out.NextCursor = &next
	}
	return &listEventsOutput{out}, nil
}

// checkCursor refuses to go on behind an event that there is not yet, as of another service or a database that was
// restored, and behind one of which later ones are not kept any more: a client that reads on there has missed some. It
// gives the sequence of the newest event.
func (e events) checkCursor(ctx context.Context, name string, cursor int64) (last int64, err error) {
	if last, err = e.log.LastEvent(ctx); err != nil {
		return 0, err
	}
	if cursor > last {
		return 0, fault.New(fault.Invalid,
			"%s is %d, and the last event is %d: begin again, as this is another service, "+
				"or its database was restored", name, cursor, last)
	}
	if cursor == 0 {
		return last, nil
	}
	first, err := e.log.FirstEvent(ctx)
	if err == nil && cursor < first-1 {
		err = fault.New(fault.Invalid,
			"%[1]s is %[2]d, and the first event that is kept is %[3]d: those between are not any more; "+
				"begin again with 0 as %[1]s", name, cursor, first)
	}
	return last, err
}

// readSequence reads the sequence of an event; 0 when there is none.
func readSequence(problems *fault.List, name, text string) int64 {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		problems.At(name, "must be the sequence of an event")
	}
	return n
}
