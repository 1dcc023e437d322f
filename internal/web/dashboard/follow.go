package dashboard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/event"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	// maxFollowers is how many pages are kept up to date at a time, maxOfPerson those of one person.
	maxFollowers, maxOfPerson = 256, 32
	// heartbeat is the time between two comments, so that nobody on the way takes a stream for dead, and how often it
	// is looked whether the person may still see the page.
	heartbeat   = 10 * time.Second
	followWrite = 10 * time.Second // how long a browser may take no bytes
	eventBatch  = 100
	// progressTime is between two looks at work whose progress no events tell.
	progressTime = 2 * time.Second
)

// EventLog tells what happened, as for the API.
type EventLog interface {
	ListEvents(ctx context.Context, q event.Query) ([]event.Event, error)
	// LastEvent is the sequence of the newest event.
	LastEvent(ctx context.Context) (int64, error)
	// News is closed when events have come that can be read; it is taken before they are.
	News() <-chan struct{}
}

// followers counts the pages that are kept up to date.
type followers struct {
	mu  sync.Mutex
	all int
	of  map[string]int // by session
}

func (f *followers) enter(session string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all >= maxFollowers || f.of[session] >= maxOfPerson {
		return false
	}
	if f.of == nil {
		f.of = map[string]int{}
	}
	f.all++
	f.of[session]++
	return true
}

func (f *followers) leave(session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all--
	if f.of[session]--; f.of[session] == 0 {
		delete(f.of, session)
	}
}

func wantsStream(r *http.Request) bool { return r.Header.Get("Accept") == "text/event-stream" }

// followed is a page that is kept up to date.
type followed struct {
	view  string                                                  // its templates, one of which is its parts
	read  func(ctx context.Context, p access.Person) (any, error) // what they are given; fault.NotFound: it is over
	about func(e event.Event) bool                                // whether an event tells of it
}

// moving is what changes by itself, and has no events that tell of it.
type moving interface{ Moving() bool }

func (s *server) followStream(w http.ResponseWriter, r *http.Request, p access.Person) {
	stream := id.LiveStream(r.PathValue("id"))
	s.keep(w, r, p, followed{
		view: "stream",
		read: func(ctx context.Context, p access.Person) (any, error) { return s.streamPage(ctx, p, stream) },
		about: func(e event.Event) bool { // or of its recordings
			return e.ObjectID == string(stream) || e.Resource == string(stream) ||
				bytes.Contains(e.Data, []byte(`"`+stream+`"`))
		},
	})
}

// keep sends a page again whenever it changes, as a server-sent event (HTML standard, section 9.2): the page and its
// events are made by the same templates.
func (s *server) keep(w http.ResponseWriter, r *http.Request, p access.Person, what followed) {
	if _, err := what.read(r.Context(), p); err != nil {
		s.fail(w, r, p, err)
		return
	}
	if !s.follow.enter(p.Session.Hash) {
		http.Error(w, "too many pages are open", http.StatusTooManyRequests)
		return
	}
	defer s.follow.leave(p.Session.Hash)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies pass it on at once
	f := follower{followed: what, s: s, w: w, r: r, control: http.NewResponseController(w), person: p}
	if err := f.run(r.Context()); err != nil && r.Context().Err() == nil && !errors.Is(err, errGone) {
		s.Logger.WarnContext(r.Context(), "keep page of the dashboard up to date", slog.Any("error", err))
	}
}

var errGone = errors.New("client has gone")

// follower is one open page.
type follower struct {
	followed

	s       *server
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	person  access.Person
	again   *time.Timer // it is time to look again at what is moving
	last    int64       // sequence of the last event that was looked at
	sent    []byte      // the page as it was sent last
}

// run sends the page as it is, for something may have happened since it was loaded, and then as it becomes.
func (f *follower) run(ctx context.Context) (err error) {
	if f.last, err = f.s.Events.LastEvent(ctx); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	f.again = time.NewTimer(progressTime)
	defer f.again.Stop()
	if err = f.send(": hello\n\n"); err != nil {
		return err
	}
	for changed := true; ; {
		if changed {
			if over, failed := f.show(ctx); over || failed != nil {
				return failed
			}
		}
		news := f.s.Events.News()
		if changed, err = f.happened(ctx); err != nil {
			return err
		}
		if changed {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-news:
		case <-f.again.C:
			changed = true
		case <-beat.C:
			if f.person, err = f.s.who(f.r); fault.Is(err, fault.Unauthorized) || err == nil &&
				!f.person.Permits(reads) {
				return f.send("event: over\ndata: signed out\n\n")
			} else if err != nil {
				return err
			}
			if err = f.send(": still here\n\n"); err != nil {
				return err
			}
		}
	}
}

// happened reports whether there are new events of what the page shows.
func (f *follower) happened(ctx context.Context) (changed bool, err error) {
	q := event.Query{Environment: f.person.Environment.ID, Limit: eventBatch}
	for {
		q.After = f.last
		found, err := f.s.Events.ListEvents(ctx, q)
		if err != nil {
			return changed, err
		}
		for _, e := range found {
			f.last = e.Sequence
			changed = changed || f.about(e)
		}
		if len(found) < q.Limit {
			return changed, nil
		}
	}
}

// show sends the page when it is not as it was sent last; over says that it is the last time, for what it shows is
// deleted.
func (f *follower) show(ctx context.Context) (over bool, err error) {
	v, err := f.read(ctx, f.person)
	if fault.Is(err, fault.NotFound) {
		return true, f.send("event: over\ndata: deleted\n\n")
	}
	if err != nil {
		return false, err
	}
	f.again.Stop()
	if m, ok := v.(moving); ok && m.Moving() {
		f.again.Reset(progressTime)
	}
	var b bytes.Buffer
	if err = f.s.views[f.view].ExecuteTemplate(&b, "parts", f.s.page(f.r, f.person, v)); err != nil {
		return false, err
	}
	if bytes.Equal(b.Bytes(), f.sent) {
		return false, nil
	}
	f.sent = b.Bytes()
	var out strings.Builder
	out.WriteString("event: page\n")
	for line := range strings.Lines(b.String()) {
		out.WriteString("data: " + strings.TrimRight(line, "\r\n") + "\n")
	}
	out.WriteString("\n")
	return false, f.send(out.String())
}

func (f *follower) send(text string) error {
	_ = f.control.SetWriteDeadline(time.Now().Add(followWrite)) // not every writer has deadlines
	if _, err := io.WriteString(f.w, text); err != nil {
		return errGone
	}
	if err := f.control.Flush(); err != nil {
		return errGone
	}
	return nil
}
