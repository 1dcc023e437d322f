package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"millrace/internal/control/event"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	maxEventStreams = 64 // at a time; each reads every event
	maxOfOne        = 16 // of them, of one environment
	// eventPause is the time between two heartbeats, so that nobody on the way takes a stream for dead, and how often
	// the token is looked at again.
	eventPause = 5 * time.Second
	eventWrite = 10 * time.Second // how long a client may take no bytes
	eventBatch = 100
)

// followers counts who follow events.
type followers struct {
	mu  sync.Mutex
	all int
	of  map[id.Environment]int
}

// enter takes a place, if one is free.
func (f *followers) enter(env id.Environment) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all >= maxEventStreams || f.of[env] >= maxOfOne {
		return false
	}
	if f.of == nil {
		f.of = map[id.Environment]int{}
	}
	f.all++
	f.of[env]++
	return true
}

// leave gives a place back.
func (f *followers) leave(env id.Environment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all--
	if f.of[env]--; f.of[env] == 0 {
		delete(f.of, env)
	}
}

type streamEventsInput struct {
	EventFilter

	After string `query:"after" doc:"Start after the event with this sequence; 0 starts with the oldest event kept."`
	Last  string `header:"Last-Event-ID" doc:"The same, as browsers send it. Takes precedence over after."`
}

func (s *server) streamEvents(ctx context.Context, in *streamEventsInput) (*huma.StreamResponse, error) {
	var problems fault.List
	q := in.query(ctx, &problems)
	from := or(in.Last, in.After)
	q.After, q.Limit = readSequence(&problems, "Last-Event-ID", from), eventBatch
	if err := problems.Err(); err != nil {
		return nil, err
	}
	last, err := s.checkCursor(ctx, "Last-Event-ID", q.After)
	if err != nil {
		return nil, err
	}
	if from == "" {
		q.After = last
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		r, w := humago.Unwrap(hc)
		if !s.followers.enter(q.Environment) {
			writeError(w, newError(http.StatusTooManyRequests, typeTooMany, "Too many clients follow events"))
			return
		}
		defer s.followers.leave(q.Environment)
		h := w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no") // proxies pass it on at once
		w.WriteHeader(http.StatusOK)
		may := func() error {
			_, who, err := s.identify(r, s.now())
			if err != nil {
				return err
			}
			return permits(who, hc.Operation())
		}
		if err := s.follow(r.Context(), w, q, may); err != nil && r.Context().Err() == nil && !errors.Is(err, errGone) {
			_ = s.fail(r.Context(), err) // it is logged; the client asks again from where it was
		}
	}}, nil
}

// errGone says that the client takes no bytes any more.
var errGone = errors.New("client has gone")

// atOnce is closed.
var atOnce = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }() //nolint:gochecknoglobals // constant

// follow sends events until the client has gone, may not read them any more, or the service stops.
func (s *server) follow(ctx context.Context, w http.ResponseWriter, q event.Query, may func() error) error {
	control := http.NewResponseController(w)
	pause := time.NewTicker(eventPause)
	defer pause.Stop()
	send := func(text string) error {
		_ = control.SetWriteDeadline(time.Now().Add(eventWrite)) // not every writer has deadlines
		if _, err := io.WriteString(w, text); err != nil {
			return errGone
		}
		if err := control.Flush(); err != nil {
			return errGone
		}
		return nil
	}
	if err := send(": hello\n\n"); err != nil {
		return err
	}
	for {
		news := s.events.News()
		n, err := s.sendEvents(ctx, send, &q)
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
			if err := send(": still here\n\n"); err != nil {
				return err
			}
		}
	}
}

// sendEvents sends what has come, and gives how many events that were.
func (s *server) sendEvents(ctx context.Context, send func(string) error, q *event.Query) (int, error) {
	found, err := s.events.ListEvents(ctx, *q)
	if err != nil {
		return 0, err
	}
	form := s.form.page()
	for _, e := range found {
		shown, err := form.Show(ctx, e)
		if err != nil {
			return 0, err
		}
		text, err := json.Marshal(shown)
		if err != nil {
			return 0, fmt.Errorf("encode event: %w", err)
		}
		if err := send(fmt.Sprintf("id: %d\ndata: %s\n\n", e.Sequence, text)); err != nil {
			return 0, err
		}
		q.After = e.Sequence
	}
	return len(found), nil
}

// EndlessPath reports whether requests of a path have no end of their own: they end with the client or the service.
func EndlessPath(p string) bool { return p == followPath }
