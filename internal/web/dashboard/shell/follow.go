package shell

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/follow"
)

// ProgressTime is between two looks at work whose progress no events tell.
const ProgressTime = 2 * time.Second

const (
	// maxFollowers is how many pages are kept up to date at a time, maxOfPerson those of one person.
	maxFollowers, maxOfPerson = 256, 32
	// Heartbeat is the time between two comments, so that nobody on the way takes a stream for dead, and how often it
	// is looked whether the person may still see the page.
	Heartbeat = 10 * time.Second
	// A page is looked at once in a pace at most: what happens meanwhile costs one look. The more pages there are, the
	// longer it is, so that they are looked at 50 times a second at most, all taken together.
	minPace, pacePerPage = 250 * time.Millisecond, 20 * time.Millisecond
)

// EventLog tells what happened, as for the API.
type EventLog interface {
	ListEvents(ctx context.Context, q event.Query) ([]event.Event, error)
	// Standings are how far events of an environment have come at its webhooks, by their sequences.
	Standings(ctx context.Context, env id.Environment, events []event.Event) (map[int64][]webhook.Standing, error)
	// LastEvent is the sequence of the newest event.
	LastEvent(ctx context.Context) (int64, error)
	// News is closed when events have come that can be read; it is taken before they are.
	News() <-chan struct{}
}

func wantsStream(r *http.Request) bool { return r.Header.Get("Accept") == "text/event-stream" }

// Followed is an open page that is kept up to date; one goroutine calls it.
type Followed interface {
	// Note takes down what has happened, and reports whether the page may be another one by that. Most of what happens
	// is nothing to a page, so it must cost next to nothing.
	Note(h Change) bool
	// NoteAll has all of the page shown again.
	NoteAll()
	// Show renders those parts that may differ from what was sent, by the page's own templates, when all up to a
	// sequence was noted. again is the time to the next call though nothing happens; 0: there is none.
	// fault.NotFound: there is no such page any more.
	Show(ctx context.Context, p access.Person, sequence int64) (parts string, again time.Duration, err error)
}

// keepUpToDate sends the parts of a page that change as server-sent events (HTML standard, section 9.2).
func (s *Shell) keepUpToDate(w http.ResponseWriter, r *http.Request, p access.Person, page Followed) {
	of, ok := s.followers.Enter(p.Session.Hash)
	if !ok {
		http.Error(w, "too many pages are open", http.StatusTooManyRequests)
		return
	}
	defer s.followers.Leave(p.Session.Hash)
	f := follower{s: s, r: r, stream: follow.Open(w), session: of, person: p, page: page}
	err := f.run(r.Context())
	if err != nil && r.Context().Err() == nil && !errors.Is(err, follow.ErrGone) && !errors.Is(err, errOver) {
		s.Logger.WarnContext(r.Context(), "keep page of the dashboard up to date", slog.Any("error", err))
	}
}

var errOver = errors.New("page is over")

// follower keeps one open page up to date.
type follower struct {
	s       *Shell
	r       *http.Request
	stream  *follow.Stream
	session *session
	person  access.Person
	page    Followed
	last    int64 // sequence of the last event that was noted
}

// run sends the page as it is, for something may have happened since it was loaded, and then as it becomes.
func (f *follower) run(ctx context.Context) error {
	beat := time.NewTimer(untilNext(Heartbeat))
	defer beat.Stop()
	pause := time.NewTimer(minPace)
	defer pause.Stop()
	now, err := f.s.tail.since(ctx, math.MaxInt64)
	if err != nil {
		return err
	}
	f.last = now.last
	if err = f.stream.Comment("hello"); err != nil {
		return err
	}
	again := time.NewTimer(minPace)
	defer again.Stop()
	f.page.NoteAll()
	for due := true; ; {
		changed, news, err := f.note(ctx)
		if err != nil {
			return err
		}
		if due || changed {
			var after time.Duration
			if after, err = f.show(ctx); err != nil {
				return err
			}
			pace := paceOf(f.s.followers.Taken())
			pause.Reset(untilNext(pace))
			again.Stop()
			if after > 0 {
				again.Reset(max(after, pace))
			}
			news = nil
		}
		due = false
		select {
		case <-ctx.Done():
			return nil
		case <-news:
		case <-pause.C:
		case <-again.C:
			due = true
		case <-beat.C:
			if err = f.beat(); err != nil {
				return err
			}
			beat.Reset(untilNext(Heartbeat))
		}
	}
}

// note has the page note what has happened since the last time, and gives the channel that is closed by the next news.
func (f *follower) note(ctx context.Context) (changed bool, news <-chan struct{}, err error) {
	l, err := f.s.tail.since(ctx, f.last)
	if err != nil {
		return false, nil, err
	}
	if !l.all {
		f.page.NoteAll()
		changed = true
	}
	for _, h := range l.found {
		if h.environment == f.person.Environment.ID && f.page.Note(h) {
			changed = true
		}
	}
	f.last = l.last
	return changed, l.news, nil
}

// show sends what the page has to show. again is the time to the next call though nothing happens; 0: there is none.
func (f *follower) show(ctx context.Context) (again time.Duration, err error) {
	parts, again, err := f.page.Show(ctx, f.person, f.last)
	switch {
	case fault.Is(err, fault.NotFound):
		return 0, f.over("deleted")
	case err != nil || parts == "":
		return again, err
	}
	return again, f.stream.Event("page", parts)
}

// beat looks whether the person may still see the page, and says that it is kept up to date.
func (f *follower) beat() (err error) {
	f.person, err = f.session.who(f.r.Context(), func() (access.Person, error) { return f.s.who(f.r) })
	if fault.Is(err, fault.Unauthorized) || err == nil && !f.person.Permits(Reads) {
		return f.over("signed out")
	}
	if err != nil {
		return err
	}
	return f.stream.Comment("still here")
}

// over says why nothing will be sent any more.
func (f *follower) over(why string) error {
	if err := f.stream.Event("over", why); err != nil {
		return err
	}
	return errOver
}
