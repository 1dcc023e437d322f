package webhook

import (
	"context"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/id"
)

// Outbox is the part of the store that senders of deliveries need; storage/db implements it. One call is one
// transaction.
type Outbox interface {
	// Claim gives the endpoints that node sends to: those that it has a lease on, which is prolonged, and those that
	// nobody else has one on.
	Claim(ctx context.Context, node id.Node, lease time.Duration) ([]Held, error)
	// Release gives all of node's leases back.
	Release(ctx context.Context, node id.Node) error
	// Queue makes deliveries of events for endpoints that node holds, and moves their positions on. It gives the
	// deliveries of each endpoint that was moved: one whose position is another, or that was disabled or taken, is left
	// alone.
	Queue(ctx context.Context, node id.Node, steps []Step) (map[id.Webhook][]Pending, error)
	// Pending gives the waiting deliveries of an endpoint in the order of their events, at most limit of them.
	Pending(ctx context.Context, w id.Webhook, limit int) ([]Pending, error)
	// Record writes what came of node's attempts, and since when endpoints fail. What comes too late, as a delivery
	// does not wait any more or the endpoint is another node's, is noted as an attempt and changes nothing but what was
	// given up and has succeeded after all.
	Record(ctx context.Context, node id.Node, results []Result, health map[id.Webhook]time.Time) error
	// FailTried gives up waiting deliveries of an endpoint that is disabled, at most limit of them, and says how many
	// there were. Those that were not tried since they were queued wait until it is enabled.
	FailTried(ctx context.Context, w id.Webhook, why Attempt, limit int) (int, error)
	// Attempts are those that were made to deliver an event.
	Attempts(ctx context.Context, w id.Webhook, sequence int64) ([]Attempt, error)
	SaveWebhook(ctx context.Context, w Webhook, events ...event.Event) error
	ListEvents(ctx context.Context, q event.Query) ([]event.Event, error)
	// News is closed when something may have changed; it is taken before one looks.
	News() <-chan struct{}
}

// Held is an endpoint that a node sends to.
type Held struct {
	Webhook

	Position int64 // the sequence of the last event that was queued, or that needs no delivery
	Err      error // the row can't be read; of the endpoint there is what can be, and nothing can be sent to it
}

// Step takes an endpoint from one position to another, with deliveries of these events.
type Step struct {
	Webhook  id.Webhook
	From, To int64
	Events   []event.Event
}

// Pending is a delivery that waits.
type Pending struct {
	Sequence int64
	Resource string
	Attempts int
	Replayed bool      // attempts were made before those
	FirstAt  time.Time // of the first attempt; zero: there was none
	NextAt   time.Time // not before; zero: at once
}

// Result is what came of one attempt.
type Result struct {
	Webhook  id.Webhook
	Sequence int64
	State    State
	Attempt  Attempt
	FirstAt  time.Time
	NextAt   time.Time
}
