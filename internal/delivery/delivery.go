// Package delivery sends events to webhook endpoints. It moves events from the log into a queue per endpoint and from
// there to the endpoint, retries failed attempts, and records the results. It must never know what events are about,
// SQL or HTTP.
//
// One goroutine, Run, owns the queues. It starts one for each attempt, and one for each read and write of the store, of
// which at most one of each kind is under way. The endpoints that a node sends to are leased.
package delivery

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
)

// Options is what a Dispatcher needs; every field must be set.
type Options struct {
	Outbox webhook.Outbox
	// Body is what an endpoint is sent of an event that was tried to be sent before as attempts say.
	Body func(ctx context.Context, e event.Event, attempts []webhook.Attempt) ([]byte, error)
	// Post sends a body with the headers that sign it; an error says why there was no response.
	Post   func(ctx context.Context, address string, headers map[string]string, body []byte) (Response, error)
	Node   id.Node
	Now    func() time.Time
	Logger *slog.Logger
}

// Response is what an endpoint says to a Post.
type Response struct {
	Status  int
	Headers map[string][]string
	Body    []byte // its beginning
	// RetryAfter is how long after it the endpoint wants the next attempt at the earliest; 0: it does not say.
	RetryAfter time.Duration
}

const (
	lease     = 30 * time.Second
	lookEvery = 5 * time.Second // for what other processes have changed, and to keep leases
	// idleAgain is between two looks while there is no endpoint to send to.
	idleAgain  = 50 * time.Millisecond
	storeAgain = time.Second     // after an error of the store
	grace      = 2 * time.Second // that attempts have to end once the service stops
	batch      = 200             // events that are queued in one transaction
	maxResults = 500             // attempts that are recorded in one transaction
	maxWaiting = 50_000          // deliveries in memory, of one endpoint at most
	allWaiting = 500_000         // of all endpoints, which have equal shares: others leave in the store what is more
	maxFlight  = 16              // attempts at a time, for each endpoint
	minFlight  = 2               // for one that fails
	gaveUp     = 500             // deliveries that are given up in one transaction
)

// Dispatcher sends what happens to the endpoints of a node.
type Dispatcher struct {
	o         Options
	bodies    *bodies
	endpoints map[id.Webhook]*endpoint
	// unreadable are endpoints whose rows can't be read, of which the log tells.
	unreadable map[id.Webhook]bool
	attempts   context.Context //nolint:containedctx // of all attempts; Run ends it
	memory     memory

	outcomes chan attemptResult
	rounds   chan round
	writes   chan write

	wanted  bool // to look for what has changed
	looking bool
	lookAt  time.Time    // not before
	recent  map[key]bool // what was recorded since the round that is under way has begun
	drained map[id.Webhook]int64

	results  []result
	health   map[id.Webhook]time.Time
	hopeless map[id.Webhook]hopeless
	writing  bool
	writeAt  time.Time // not before
	flight   int       // attempts of all endpoints
	warned   map[warning]warned
}

// memory is how many deliveries may be in it.
type memory struct{ one, all int }

// each is how many deliveries of each of some endpoints are in memory at most.
func (m memory) each(endpoints int) int { return min(m.one, max(m.all/max(endpoints, 1), 1)) }

// key names a delivery.
type key struct {
	webhook  id.Webhook
	sequence int64
}

// New makes a dispatcher; nothing starts.
func New(o Options) *Dispatcher {
	return &Dispatcher{
		o: o, bodies: newBodies(o), memory: memory{maxWaiting, allWaiting}, endpoints: map[id.Webhook]*endpoint{},
		outcomes: make(chan attemptResult), rounds: make(chan round), writes: make(chan write),
		recent: map[key]bool{}, drained: map[id.Webhook]int64{}, health: map[id.Webhook]time.Time{},
		hopeless: map[id.Webhook]hopeless{}, warned: map[warning]warned{},
	}
}

// Name implements lifecycle.Service.
func (*Dispatcher) Name() string { return "webhooks" }

// Run implements lifecycle.Service.
func (d *Dispatcher) Run(ctx context.Context) error {
	var cancel context.CancelFunc
	d.attempts, cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	next := time.NewTimer(0)
	defer next.Stop()
	d.wanted = true
	news := d.o.Outbox.News()
	for {
		select {
		case <-ctx.Done():
			d.stop(ctx, cancel)
			return context.Cause(ctx)
		case <-news:
			news, d.wanted = d.o.Outbox.News(), true
		case <-look.C:
			d.wanted = true
		case r := <-d.rounds:
			d.took(ctx, r)
		case a := <-d.outcomes:
			d.attempted(ctx, a)
		case w := <-d.writes:
			d.wrote(ctx, w)
		case <-next.C:
		}
		d.look(ctx)
		d.write(ctx)
		next.Reset(d.send())
	}
}

// stop lets attempts end, for a while, writes down what came of them, and gives the leases back.
func (d *Dispatcher) stop(ctx context.Context, cancel func()) {
	over := time.AfterFunc(grace, cancel)
	defer over.Stop()
	for d.flight > 0 || d.looking || d.writing || len(d.results) > 0 {
		d.write(ctx)
		select {
		case a := <-d.outcomes:
			d.attempted(ctx, a)
		case w := <-d.writes:
			if d.wrote(ctx, w); w.err != nil {
				d.results = nil // they are sent again by the next process
			}
		case <-d.rounds:
			d.looking = false
		}
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer done()
	if err := d.o.Outbox.Release(ctx, d.o.Node); err != nil {
		d.o.Logger.DebugContext(ctx, "give leases of webhooks back", slog.Any("error", err))
	}
}

// send starts the attempts that are due, and says when the next one is.
func (d *Dispatcher) send() time.Duration {
	now := d.o.Now()
	wait := time.Minute
	for _, e := range d.endpoints {
		if !e.leased(now) { // a round prolongs it
			continue
		}
		for e.flight < e.limit {
			l := e.due(now)
			if l == nil {
				break
			}
			e.flight++
			d.flight++
			go d.attempt(attemptResult{from: e, webhook: e.Webhook, resource: l.resource, item: l.waiting[0]})
		}
		if at, some := e.next(); some && e.flight < e.limit {
			wait = min(wait, max(at.Sub(now), 0))
		}
	}
	if len(d.results) > 0 && !d.writing {
		wait = min(wait, max(d.writeAt.Sub(now), 0))
	}
	if d.wanted && !d.looking {
		wait = min(wait, max(d.lookAt.Sub(now), 0))
	}
	return wait
}

// attempted takes the outcome of an attempt. The resource's next event waits until it is written down: after a crash
// nothing is sent in another order than before.
func (d *Dispatcher) attempted(ctx context.Context, a attemptResult) {
	d.flight--
	a.from.flight--
	now := d.o.Now()
	if a.err != nil { // of ours
		if d.attempts.Err() == nil {
			d.warn(ctx, warning{"prepare", a.webhook.ID}, a.err)
		}
		a.from.again(a.resource, now.Add(storeAgain), false)
		return
	}
	r := webhook.Result{
		Webhook:  a.webhook.ID,
		Sequence: a.item.sequence,
		State:    webhook.Delivered,
		Attempt:  a.attempt,
		FirstAt:  a.item.firstAt(),
	}
	if r.FirstAt.IsZero() {
		r.FirstAt = a.attempt.At
	}
	switch {
	case a.attempt.Succeeded():
	case a.gone:
		r.State = webhook.Failed
	default:
		r.State, r.NextAt = outcome(a, r.FirstAt, now)
	}
	d.results = append(d.results, result{r, a.from, a.resource, a.retryAfter > 0})
	if !a.gone && d.endpoints[a.webhook.ID] == a.from {
		d.judge(a.from, a.attempt, now)
	}
}

// outcome reports whether a failed delivery is tried again, and when: not before the endpoint wants it, but once more
// at the end of webhook.Patience, for which the last of its attempts is left.
func outcome(a attemptResult, first, now time.Time) (webhook.State, time.Time) {
	end := first.Add(webhook.Patience)
	if !now.Before(end) {
		return webhook.Failed, time.Time{}
	}
	delay := webhook.Delay(int(a.item.attempts)+1, rand.Float64()) //nolint:gosec // a spread, no secret
	next := now.Add(max(delay, a.retryAfter))
	if next.After(end) || a.item.attempts+1 >= webhook.MaxAttempts-1 {
		next = end
	}
	return webhook.Waiting, next
}

// judge learns from an attempt how an endpoint does.
func (d *Dispatcher) judge(e *endpoint, a webhook.Attempt, now time.Time) {
	if a.Succeeded() {
		e.limit = min(e.limit+1, maxFlight)
		if !e.FailingSince.IsZero() {
			e.wellAgain(now)
			e.FailingSince = time.Time{}
			d.health[e.ID] = time.Time{}
		}
		return
	}
	if a.Status == 0 {
		e.limit = max(e.limit/2, minFlight)
	}
	if e.FailingSince.IsZero() {
		e.FailingSince = a.At
		d.health[e.ID] = a.At
	}
	if a.Gone() || now.Sub(e.FailingSince) >= webhook.Patience {
		d.hopeless[e.ID] = hopeless{e.Webhook, a.Gone()}
	}
}
