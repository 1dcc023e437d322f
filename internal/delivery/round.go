package delivery

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
)

// round is one look at the store: what the node sends to, and what has to be sent.
type round struct {
	held    []webhook.Held
	until   time.Time                        // the leases last longer
	pending map[id.Webhook][]webhook.Pending // all that wait
	queued  map[id.Webhook][]webhook.Pending // those that have come
	behind  map[id.Webhook]bool              // endpoints of which there is more than may be in memory
	most    int                              // deliveries of each endpoint in memory
	// endpoints that may have been another node's meanwhile: what is known of them counts no more
	fresh   map[id.Webhook]bool
	drained map[id.Webhook]int64 // disabled endpoints without waiting deliveries that were tried, by their revision
	more    bool                 // there is more to queue
	err     error
}

// known is what a round has to know of an endpoint.
type known struct {
	revision int64
	until    time.Time // the lease lasted longer
	waiting  int       // deliveries in memory
	reload   bool
	behind   bool // and there is no room for more
}

// look starts a round when one is wanted and none is under way.
func (d *Dispatcher) look(ctx context.Context) {
	if !d.wanted || d.looking || d.o.Now().Before(d.lookAt) {
		return
	}
	d.wanted, d.looking = false, true
	clear(d.recent)
	have := make(map[id.Webhook]known, len(d.endpoints))
	for key, e := range d.endpoints {
		have[key] = known{e.Revision, *e.until.Load(), e.waiting, e.reload || e.behind && e.room(), e.behind}
		e.reload = false
	}
	drained := maps.Clone(d.drained)
	ctx = context.WithoutCancel(ctx)
	go func() {
		r := round{
			until:   d.o.Now().Add(lease / 2),
			pending: map[id.Webhook][]webhook.Pending{},
			queued:  map[id.Webhook][]webhook.Pending{},
			fresh:   map[id.Webhook]bool{},
			behind:  map[id.Webhook]bool{},
			drained: drained,
		}
		r.err = d.readRound(ctx, have, &r)
		d.rounds <- r
	}()
}

func (d *Dispatcher) readRound(ctx context.Context, have map[id.Webhook]known, r *round) (err error) {
	if r.held, err = d.o.Outbox.Claim(ctx, d.o.Node, lease); err != nil {
		return err
	}
	claimed, log := d.o.Now(), map[int64][]event.Event{}
	r.most = d.memory.each(len(r.held))
	var steps []webhook.Step
	for _, h := range r.held {
		if h.Err != nil {
			continue
		}
		if !h.Enabled {
			if err = d.drain(ctx, h, r); err != nil {
				return err
			}
			continue
		}
		k, is := have[h.ID]
		r.fresh[h.ID] = !is || !claimed.Before(k.until)
		room, err := d.read(ctx, h, k, r)
		if err != nil {
			return err
		}
		if r.behind[h.ID] = room <= 0; r.behind[h.ID] {
			continue
		}
		events, read := log[h.Position]
		if !read {
			if events, err = d.o.Outbox.ListEvents(ctx, event.Query{After: h.Position, Limit: batch}); err != nil {
				return err
			}
			log[h.Position] = events
		}
		if step, some := stepOf(h, events, room); some {
			steps = append(steps, step)
			r.more = r.more || len(events) == batch
			r.behind[h.ID] = step.To < events[len(events)-1].Sequence
		}
	}
	return d.queue(ctx, steps, r)
}

// read reads what waits for an endpoint, unless it is known, and says how many deliveries more there may be in memory.
// Where more waits than that, nothing is queued behind it.
func (d *Dispatcher) read(ctx context.Context, h webhook.Held, k known, r *round) (room int, err error) {
	if r.fresh[h.ID] || k.reload || k.revision != h.Revision {
		r.pending[h.ID], err = d.o.Outbox.Pending(ctx, h.ID, r.most)
		return r.most - len(r.pending[h.ID]), err
	}
	if k.behind {
		return 0, nil
	}
	return r.most - k.waiting, nil
}

// stepOf takes an endpoint behind events, with at most room deliveries.
func stepOf(h webhook.Held, events []event.Event, room int) (webhook.Step, bool) {
	s := webhook.Step{Webhook: h.ID, From: h.Position}
	for _, e := range events {
		if h.Wants(e) {
			if len(s.Events) == room {
				break
			}
			s.Events = append(s.Events, e)
		}
		s.To = e.Sequence
	}
	return s, s.To > 0
}

func (d *Dispatcher) queue(ctx context.Context, steps []webhook.Step, r *round) error {
	if len(steps) == 0 {
		return nil
	}
	queued, err := d.o.Outbox.Queue(ctx, d.o.Node, steps)
	if err != nil {
		return err
	}
	for _, s := range steps {
		pending, moved := queued[s.Webhook]
		if !moved {
			r.more = true // it was set back meanwhile
			continue
		}
		r.queued[s.Webhook] = append(r.queued[s.Webhook], pending...)
	}
	return nil
}

// drain gives up what was tried for an endpoint that is disabled; it can be replayed.
func (d *Dispatcher) drain(ctx context.Context, h webhook.Held, r *round) error {
	if r.drained[h.ID] == h.Revision {
		return nil
	}
	why := webhook.Attempt{At: d.o.Now().UTC(), Address: h.Address, Error: "the webhook was disabled"}
	n, err := d.o.Outbox.FailTried(ctx, h.ID, why, gaveUp)
	if err != nil {
		return err
	}
	if n < gaveUp {
		r.drained[h.ID] = h.Revision
	} else {
		r.more = true
	}
	return nil
}

// took puts what a round has found into the queues.
func (d *Dispatcher) took(ctx context.Context, r round) {
	d.looking = false
	if r.err != nil {
		if !errors.Is(r.err, context.Canceled) {
			d.warn(ctx, warning{doing: "look for them"}, r.err)
		}
		for _, e := range d.endpoints { // what was queued before the error may be missing
			e.reload = true
		}
		return
	}
	d.wanted, d.drained = d.wanted || r.more, r.drained
	for k := range d.recent {
		delete(d.drained, k.webhook)
	}
	if len(r.held) == 0 { // who makes many things and has no endpoint does not pay for a look at each of them
		d.lookAt = d.o.Now().Add(idleAgain)
	}
	held := make(map[id.Webhook]bool, len(r.held))
	d.logUnreadable(ctx, r.held)
	for _, h := range r.held {
		if !h.Enabled || h.Err != nil {
			continue
		}
		held[h.ID] = true
		e := d.endpoints[h.ID]
		if e == nil || r.fresh[h.ID] {
			e = newEndpoint()
			d.endpoints[h.ID] = e
		}
		failing := e.FailingSince
		if e.ID == "" || h.Revision != e.Revision {
			failing = h.FailingSince
		}
		e.Webhook = h.Webhook
		e.until.Store(&r.until)
		e.FailingSince = failing // newer here than in the row
		e.most, e.behind = r.most, r.behind[h.ID]
		if waiting, read := r.pending[h.ID]; read {
			e.keep(waiting)
		}
		for _, list := range [][]webhook.Pending{r.pending[h.ID], r.queued[h.ID]} {
			for _, p := range list {
				d.enter(e, p)
			}
		}
	}
	for key := range d.endpoints {
		if !held[key] { // deleted, disabled, or another node's
			delete(d.endpoints, key)
		}
	}
}

// logUnreadable logs which endpoints can't be sent to, each once.
func (d *Dispatcher) logUnreadable(ctx context.Context, all []webhook.Held) {
	told := d.unreadable
	d.unreadable = map[id.Webhook]bool{}
	for _, h := range all {
		if h.Err == nil {
			continue
		}
		d.unreadable[h.ID] = true
		if !told[h.ID] {
			d.o.Logger.ErrorContext(ctx, "nothing can be sent to a webhook", slog.Any("webhook_id", h.ID),
				slog.Any("error", h.Err))
		}
	}
}

// enter puts a delivery into an endpoint's queue. One that is there already, or was recorded while the round was under
// way, may be newer in the store than here: the next round reads the queue again.
func (d *Dispatcher) enter(e *endpoint, p webhook.Pending) {
	if d.recent[key{e.ID, p.Sequence}] {
		e.reload, d.wanted = true, true
		return
	}
	e.add(p)
}
