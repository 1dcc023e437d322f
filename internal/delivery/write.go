package delivery

import (
	"context"
	"log/slog"
	"time"

	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// result is the outcome of an attempt that is to be recorded.
type result struct {
	webhook.Result

	from     *endpoint
	resource string
	asked    bool // the endpoint has said when it wants the event again
}

// hopeless is an endpoint that is to be disabled.
type hopeless struct {
	webhook.Webhook

	gone bool // it has said so; else it has failed for too long
}

// write is one transaction that records attempts.
type write struct {
	results  []result
	health   map[id.Webhook]time.Time
	hopeless map[id.Webhook]hopeless
	err      error
}

// write records what has come together, when nothing is being recorded.
func (d *Dispatcher) write(ctx context.Context) {
	if d.writing || len(d.results) == 0 || d.o.Now().Before(d.writeAt) {
		return
	}
	n := min(len(d.results), maxResults)
	w := write{results: d.results[:n:n], health: d.health, hopeless: d.hopeless}
	d.results, d.health, d.hopeless = d.results[n:], map[id.Webhook]time.Time{}, map[id.Webhook]hopeless{}
	d.writing = true
	ctx = context.WithoutCancel(ctx)
	go func() {
		w.err = d.record(ctx, w)
		d.writes <- w
	}()
}

func (d *Dispatcher) record(ctx context.Context, w write) error {
	results := make([]webhook.Result, 0, len(w.results))
	for _, r := range w.results {
		results = append(results, r.Result)
	}
	if err := d.o.Outbox.Record(ctx, d.o.Node, results, w.health); err != nil {
		return err
	}
	for _, h := range w.hopeless {
		after, events := h.GivenUp(d.o.Now())
		err := d.o.Outbox.SaveWebhook(ctx, after, events)
		if err != nil && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.NotFound) { // its owner has changed it
			return err
		}
		if err == nil {
			d.logDisabled(ctx, h)
		}
	}
	return nil
}

func (d *Dispatcher) logDisabled(ctx context.Context, h hopeless) {
	if h.gone {
		d.o.Logger.WarnContext(ctx, "disabled a webhook whose endpoint responded with 410 Gone",
			slog.Any("webhook_id", h.ID))
		return
	}
	d.o.Logger.WarnContext(ctx, "disabled a webhook that has failed for too long", slog.Any("webhook_id", h.ID),
		slog.Duration("after", webhook.Patience))
}

// wrote lets the resources go on whose attempts are recorded; what was not is tried again.
func (d *Dispatcher) wrote(ctx context.Context, w write) {
	d.writing = false
	if w.err != nil {
		d.warn(ctx, warning{doing: "record attempts"}, w.err)
		d.results = append(w.results, d.results...)
		for key, since := range w.health {
			if _, newer := d.health[key]; !newer {
				d.health[key] = since
			}
		}
		d.writeAt = d.o.Now().Add(storeAgain)
		return
	}
	for _, r := range w.results {
		if d.looking {
			d.recent[key{r.Webhook, r.Sequence}] = true
		}
		r.from.complete(r)
		d.wanted = d.wanted || r.from.behind && r.from.room()
		// it may be disabled, or have been another node's meanwhile
		if r.State == webhook.Waiting && d.endpoints[r.Webhook] != r.from {
			delete(d.drained, r.Webhook)
			d.wanted = true
			if e := d.endpoints[r.Webhook]; e != nil {
				e.reload = true
			}
		}
	}
	if len(w.hopeless) > 0 {
		d.wanted = true
	}
}
