package dashboard

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
)

// looksAfter is how often the page of a webhook is read after an event that it wants: no event tells what has become of
// a delivery.
const looksAfter = 3

// followWebhook keeps the page of a webhook up to date.
func (s *server) followWebhook(r *request) (view, error) {
	if _, err := s.webhookOf(r); err != nil {
		return view{}, err
	}
	return keepOpen(&followedWebhook{s: s, r: r, of: webhookID(r), q: r.URL.Query()}), nil
}

// followedWebhook is the open page of a webhook: it is sent whole, and the browser puts in what differs.
type followedWebhook struct {
	s     *server
	r     *request
	of    id.Webhook
	q     url.Values
	types []string // that it wants; none: all
	looks int      // that are due, though nothing waits
	sent  string
}

func (f *followedWebhook) note(h happening) bool {
	if h.object != string(f.of) && len(f.types) > 0 && !slices.Contains(f.types, h.typ) {
		return false
	}
	f.looks = looksAfter
	return true
}

func (f *followedWebhook) noteAll() { f.looks = looksAfter }

func (f *followedWebhook) show(
	ctx context.Context, p access.Person, _ int64,
) (parts string, again time.Duration, err error) {
	v, err := f.s.webhookPage(ctx, p, f.of, f.q)
	if err != nil {
		return "", 0, err
	}
	f.types = v.Types
	f.looks = max(0, f.looks-1)
	if f.looks > 0 || slices.ContainsFunc(v.Deliveries, func(d delivery) bool { return d.State == webhook.Waiting }) {
		again = progressTime
	}
	var b strings.Builder
	if err = f.s.views["webhook"].ExecuteTemplate(&b, "parts", f.s.page(f.r.Request, p, v)); err != nil {
		return "", 0, err
	}
	if parts = b.String(); parts == f.sent {
		return "", again, nil
	}
	f.sent = parts
	return parts, again, nil
}
