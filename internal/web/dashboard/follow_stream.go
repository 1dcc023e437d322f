package dashboard

import (
	"context"
	"net/http"
	"strings"

	"millrace/internal/control/access"
	"millrace/internal/id"
)

// followStream keeps the page of a live stream up to date.
func (s *server) followStream(w http.ResponseWriter, r *http.Request, p access.Person) {
	stream := id.LiveStream(r.PathValue("id"))
	if _, err := s.Live.Get(r.Context(), p.Environment.ID, stream); err != nil {
		s.fail(w, r, p, err)
		return
	}
	s.keepUpToDate(w, r, p, &followedStream{s: s, r: r, stream: stream})
}

// followedStream is the open page of a live stream: it is sent whole, and the browser puts in what differs.
type followedStream struct {
	s      *server
	r      *http.Request
	stream id.LiveStream
	sent   string
}

func (f *followedStream) note(h happening) bool { return h.stream == f.stream }

func (f *followedStream) noteAll() {}

func (f *followedStream) show(
	ctx context.Context, p access.Person, _ int64,
) (parts string, later bool, err error) {
	v, err := f.s.streamPage(ctx, p, f.stream)
	if err != nil {
		return "", false, err
	}
	var b strings.Builder
	if err = f.s.views["stream"].ExecuteTemplate(&b, "parts", f.s.page(f.r, p, v)); err != nil {
		return "", false, err
	}
	if parts = b.String(); parts == f.sent {
		return "", false, nil
	}
	f.sent = parts
	return parts, false, nil
}
