package webhooks

import (
	"context"
	"net/url"
	"slices"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

// looksAfter is how often the page of a webhook is read after an event that it wants: no event tells what has become of
// a delivery.
const looksAfter = 3

// followWebhook keeps the page of a webhook up to date.
func (rm *room) followWebhook(r *shell.Request) (shell.View, error) {
	if _, err := rm.webhookOf(r); err != nil {
		return shell.View{}, err
	}
	return shell.KeepOpen(&followedWebhook{s: rm, r: r, of: webhookID(r), q: r.URL.Query()}), nil
}

// followedWebhook is the open page of a webhook: it is sent whole, and the browser puts in what differs.
type followedWebhook struct {
	s     *room
	r     *shell.Request
	of    id.Webhook
	q     url.Values
	types []string // that it wants; none: all
	looks int      // that are due, though nothing waits
	sent  string
}

func (f *followedWebhook) Note(h shell.Change) bool {
	if h.Object != string(f.of) && len(f.types) > 0 && !slices.Contains(f.types, h.Type) {
		return false
	}
	f.looks = looksAfter
	return true
}

func (f *followedWebhook) NoteAll() { f.looks = looksAfter }

func (f *followedWebhook) Show(
	ctx context.Context, p access.Person, _ int64,
) (parts string, again time.Duration, err error) {
	v, err := f.s.webhookPage(ctx, p, f.of, f.q)
	if err != nil {
		return "", 0, err
	}
	f.types = v.Types
	f.looks = max(0, f.looks-1)
	if f.looks > 0 || slices.ContainsFunc(v.Deliveries, func(d delivery) bool { return d.State == webhook.Waiting }) {
		again = shell.ProgressTime
	}
	parts, err = f.s.Part(f.r, p, "webhook", "parts", v)
	if err != nil || parts == f.sent {
		return "", again, err
	}
	f.sent = parts
	return parts, again, nil
}
