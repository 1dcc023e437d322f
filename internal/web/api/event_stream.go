package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"millrace/internal/control/event"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/follow"
)

const (
	maxEventStreams = 64 // at a time; each reads every event
	maxOfOne        = 16 // of them, of one environment
	// eventPause is the time between two heartbeats, so that nobody on the way takes a stream for dead, and how often
	// the token is looked at again.
	eventPause = 5 * time.Second
	eventBatch = 100
)

// newFollowers has a place for each client that follows events, by environment.
func newFollowers() *follow.Places[id.Environment, struct{}] {
	return &follow.Places[id.Environment, struct{}]{
		All: maxEventStreams, Each: maxOfOne, Make: func() struct{} { return struct{}{} },
	}
}

type streamEventsInput struct {
	EventFilter

	After string `query:"after" doc:"Start after the event with this sequence; 0 starts with the oldest event kept."`
	Last  string `header:"Last-Event-ID" doc:"The same, as browsers send it. Takes precedence over after."`
}

func (e events) stream(ctx context.Context, in *streamEventsInput) (*huma.StreamResponse, error) {
	var problems fault.List
	q := in.query(ctx, &problems)
	from := or(in.Last, in.After)
	q.After, q.Limit = readSequence(&problems, "Last-Event-ID", from), eventBatch
	if err := problems.Err(); err != nil {
		return nil, err
	}
	last, err := e.checkCursor(ctx, "Last-Event-ID", q.After)
	if err != nil {
		return nil, err
	}
	if from == "" {
		q.After = last
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		r, w := humago.Unwrap(hc)
		if _, ok := e.followers.Enter(q.Environment); !ok {
			writeError(w, newError(http.StatusTooManyRequests, typeTooMany, "Too many clients follow events"))
			return
		}
		defer e.followers.Leave(q.Environment)
		may := func() error {
			_, who, err := e.shell.identify(r, e.shell.now())
			if err != nil {
				return err
			}
			return permits(who, hc.Operation())
		}
		if err := e.follow(r.Context(), w, q, may); err != nil && r.Context().Err() == nil &&
			!errors.Is(err, follow.ErrGone) {
			_ = e.shell.fail(r.Context(), err) // it is logged; the client asks again from where it was
		}
	}}, nil
}

// atOnce is closed.
var atOnce = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }() //nolint:gochecknoglobals // constant

// follow sends events until the client has gone, may not read them any more, or the service stops.
func (e events) follow(ctx context.Context, w http.ResponseWriter, q event.Query, may func() error) error {
	stream := follow.Open(w)
	pause := time.NewTicker(eventPause)
	defer pause.Stop()
	if err := stream.Comment("hello"); err != nil {
		return err
	}
	for {
		news := e.log.News()
		n, err := e.send(ctx, stream, &q)
		if err != nil {
			return err
		}
		if n == q.Limit {
			news = atOnce
		}
		select {
		case <-ctx.Done():
			return nil
		case <-news:
		case <-pause.C:
			if err := may(); err != nil {
				return err
			}
			if err := stream.Comment("still here"); err != nil {
				return err
			}
		}
	}
}

// send sends what has come, and gives how many events that were.
func (e events) send(ctx context.Context, stream *follow.Stream, q *event.Query) (int, error) {
	found, err := e.log.ListEvents(ctx, *q)
	if err != nil {
		return 0, err
	}
	form := e.form.page()
	for _, ev := range found {
		shown, err := form.Show(ctx, ev)
		if err != nil {
			return 0, err
		}
		text, err := json.Marshal(shown)
		if err != nil {
			return 0, fmt.Errorf("encode event: %w", err)
		}
		if err := stream.Numbered(ev.Sequence, text); err != nil {
			return 0, err
		}
		q.After = ev.Sequence
	}
	return len(found), nil
}

// EndlessPath reports whether requests of a path have no end of their own: they end with the client or the service.
func EndlessPath(p string) bool { return p == followPath }
