package dashboard

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/event"
	"millrace/internal/fault"
)

const (
	// maxFollowers is how many pages are kept up to date at a time, maxOfPerson those of one person.
	maxFollowers, maxOfPerson = 256, 32
	// heartbeat is the time between two comments, so that nobody on the way takes a stream for dead, and how often it
	// is looked whether the person may still see the page.
	heartbeat   = 10 * time.Second
	followWrite = 10 * time.Second // how long a browser may take no bytes
	// Between two looks at a page is a pause: what happens meanwhile costs one look. The more pages there are, the
	// longer it is, so that all together are looked at 50 times a second at most.
	minPace, pacePerPage = 250 * time.Millisecond, 20 * time.Millisecond
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

// pace is the pause between two looks at a page.
func (f *followers) pace() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(minPace, time.Duration(f.all)*pacePerPage)
}

// turn is held by one goroutine at a time; who waits for it may give up.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) give() { <-t }

func wantsStream(r *http.Request) bool { return r.Header.Get("Accept") == "text/event-stream" }

// followed is an open page that is kept up to date; one goroutine calls it.
type followed interface {
	// note takes down what has happened, and reports whether the page may be another one by that. Most of what happens
	// is nothing to a page, so it must cost next to nothing.
	note(h happening) bool
	// noteAll has all of the page shown again.
	noteAll()
	// show renders those parts that may differ from what was sent, by the page's own templates, when all up to a
	// sequence was noted. again is the time to the next call though nothing happens; 0: there is none.
	// fault.NotFound: there is no such page any more.
	show(ctx context.Context, p access.Person, sequence int64) (parts string, again time.Duration, err error)
}

// keepUpToDate sends the parts of a page that change as server-sent events (HTML standard, section 9.2).
func (s *server) keepUpToDate(w http.ResponseWriter, r *http.Request, p access.Person, page followed) {
	if !s.follow.enter(p.Session.Hash) {
		http.Error(w, "too many pages are open", http.StatusTooManyRequests)
		return
	}
	defer s.follow.leave(p.Session.Hash)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies pass it on at once
	f := follower{s: s, w: w, r: r, control: http.NewResponseController(w), person: p, page: page}
	err := f.run(r.Context())
	if err != nil && r.Context().Err() == nil && !errors.Is(err, errGone) && !errors.Is(err, errOver) {
		s.Logger.WarnContext(r.Context(), "keep page of the dashboard up to date", slog.Any("error", err))
	}
}

var (
	errGone = errors.New("client has gone")
	errOver = errors.New("page is over")
)

// follower keeps one open page up to date.
type follower struct {
	s       *server
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	person  access.Person
	page    followed
	last    int64 // sequence of the last event that was noted
}

// run sends the page as it is, for something may have happened since it was loaded, and then as it becomes.
func (f *follower) run(ctx context.Context) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	pause := time.NewTimer(minPace)
	defer pause.Stop()
	now, err := f.s.tail.since(ctx, math.MaxInt64)
	if err != nil {
		return err
	}
	f.last = now.last
	if err = f.send(": hello\n\n"); err != nil {
		return err
	}
	again := time.NewTimer(minPace)
	defer again.Stop()
	f.page.noteAll()
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
			pace := f.s.follow.pace()
			pause.Reset(pace)
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
		f.page.noteAll()
		changed = true
	}
	for _, h := range l.found {
		if h.environment == f.person.Environment.ID && f.page.note(h) {
			changed = true
		}
	}
	f.last = l.last
	return changed, l.news, nil
}

// show sends what the page has to show. again is the time to the next call though nothing happens; 0: there is none.
func (f *follower) show(ctx context.Context) (again time.Duration, err error) {
	parts, again, err := f.page.show(ctx, f.person, f.last)
	switch {
	case fault.Is(err, fault.NotFound):
		return 0, f.over("deleted")
	case err != nil || parts == "":
		return again, err
	}
	return again, f.send(message("page", parts))
}

// beat looks whether the person may still see the page, and says that it is kept up to date.
func (f *follower) beat() (err error) {
	f.person, err = f.s.who(f.r)
	if fault.Is(err, fault.Unauthorized) || err == nil && !f.person.Permits(reads) {
		return f.over("signed out")
	}
	if err != nil {
		return err
	}
	return f.send(": still here\n\n")
}

// over says why nothing will be sent any more.
func (f *follower) over(why string) error {
	if err := f.send(message("over", why)); err != nil {
		return err
	}
	return errOver
}

// message writes a server-sent event.
func message(name, data string) string {
	const before = "data: "
	var out strings.Builder
	out.Grow(len(name) + len(data) + (strings.Count(data, "\n")+8)*len(before))
	out.WriteString("event: " + name + "\n")
	for line := range strings.Lines(data) {
		out.WriteString(before)
		out.WriteString(strings.TrimRight(line, "\r\n"))
		out.WriteByte('\n')
	}
	out.WriteString("\n")
	return out.String()
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
