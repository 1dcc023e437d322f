package streams

import (
	"context"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

// followStream keeps the page of a live stream up to date.
func (rm *room) followStream(r *shell.Request) (shell.View, error) {
	stream := id.LiveStream(r.PathValue("id"))
	if _, err := rm.Live.Get(r.Context(), r.Person.Environment.ID, stream); err != nil {
		return shell.View{}, err
	}
	return shell.KeepOpen(&followedStream{s: rm, r: r, stream: stream}), nil
}

// followedStream is the open page of a live stream: it is sent whole when something happens, and the browser puts in
// what differs. Between that it is sent how the encoder does, for no event tells of each sample.
type followedStream struct {
	s       *room
	r       *shell.Request
	stream  id.LiveStream
	changed bool       // since the page was read
	page    streamPage // as it was read last
	sent    string     // the page as it was sent last
	figures string     // and its figures
}

func (f *followedStream) Note(h shell.Change) bool {
	about := h.Stream == f.stream
	f.changed = f.changed || about
	return about
}

func (f *followedStream) NoteAll() { f.changed = true }

func (f *followedStream) Show(
	ctx context.Context, p access.Person, _ int64,
) (parts string, again time.Duration, err error) {
	if f.changed {
		parts, err = f.all(ctx, p)
	} else {
		parts, err = f.measured(ctx, p)
	}
	if f.page.State.HasEncoder() {
		again = f.s.Beat
	}
	return parts, again, err
}

// all renders the page; empty: it is as it was sent last.
func (f *followedStream) all(ctx context.Context, p access.Person) (page string, err error) {
	if f.page, err = f.s.streamPage(ctx, p, f.stream); err != nil {
		return "", err
	}
	f.changed = false
	if page, err = f.render(p, "parts"); err != nil || page == f.sent {
		return "", err
	}
	f.sent = page
	f.figures, err = f.render(p, "figures") // they are in it
	return page, err
}

// measured renders how the encoder does; empty: as was sent last. The stream's row is not read again.
func (f *followedStream) measured(ctx context.Context, p access.Person) (figures string, err error) {
	f.page.stream = f.s.measured(ctx, []live.Stream{f.page.Stream}, false)[0]
	f.page.Health = vitalsOf(f.page.health)
	if figures, err = f.render(p, "figures"); err != nil || figures == f.figures {
		return "", err
	}
	f.figures, f.sent = figures, "" // the page is no longer as it was sent
	return figures, nil
}

func (f *followedStream) render(p access.Person, name string) (string, error) {
	return f.s.Part(f.r, p, "stream", name, f.page)
}
