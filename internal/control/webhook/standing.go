package webhook

import (
	"slices"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/id"
)

// Standing is how far an event has come at one endpoint, without the attempts.
type Standing struct {
	Webhook id.Webhook
	State   State // empty: it was not sent, though the endpoint wants such events now
	Tried   bool  // attempts were made since it was queued last
	NextAt  time.Time
}

// Reader is an endpoint as far as Standings have to know it.
type Reader struct {
	Webhook

	Position int64 // the sequence of the last event that was queued, or that needs no delivery
}

// waits reports whether an event is still to be queued for the endpoint.
func (r Reader) waits(e event.Event) bool { return r.Enabled && r.Wants(e) && e.Sequence > r.Position }

// Standings are how far events have come at all endpoints, by their sequences. queued has the deliveries that were
// made, also for endpoints that there are no more: what waits for those will never be sent. What lies behind the
// position of an endpoint that wants it waits too, though there is no delivery yet.
func Standings(events []event.Event, all []Reader, queued map[int64][]Standing) map[int64][]Standing {
	out := make(map[int64][]Standing, len(events))
	for _, e := range events {
		known := map[id.Webhook]bool{}
		for _, d := range queued[e.Sequence] {
			i := slices.IndexFunc(all, func(r Reader) bool { return r.ID == d.Webhook })
			if i < 0 && d.State == Waiting {
				continue
			}
			if i >= 0 && all[i].waits(e) && d.State != Waiting {
				d = Standing{Webhook: d.Webhook, State: Waiting} // it is to be sent again
			}
			known[d.Webhook] = true
			out[e.Sequence] = append(out[e.Sequence], d)
		}
		for _, r := range all {
			switch {
			case known[r.ID]:
			case r.waits(e):
				out[e.Sequence] = append(out[e.Sequence], Standing{Webhook: r.ID, State: Waiting})
			case r.Enabled && r.Wants(e):
				out[e.Sequence] = append(out[e.Sequence], Standing{Webhook: r.ID})
			}
		}
	}
	return out
}
