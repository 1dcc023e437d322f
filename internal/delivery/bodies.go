package delivery

import (
	"context"
	"sync"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// keptBodies is how many events are kept in memory as they are sent: they go to every endpoint at the same time.
const keptBodies = 256

// bodies makes what is sent, once for all endpoints.
type bodies struct {
	o Options

	mu    sync.Mutex
	kept  map[int64]*firstMessage
	order []int64 // oldest first
}

// message is what is sent of one event.
type message struct {
	event string // its ID
	body  []byte
}

// firstMessage is that of an event at its first attempt; made once.
type firstMessage struct {
	once sync.Once
	message
	err error
}

func newBodies(o Options) *bodies { return &bodies{o: o, kept: map[int64]*firstMessage{}} }

// of is the message of a delivery.
func (b *bodies) of(ctx context.Context, w id.Webhook, i item) (message, error) {
	if i.attempts == 0 && !i.replayed {
		return b.first(ctx, i.sequence)
	}
	e, err := b.event(ctx, i.sequence)
	if err != nil {
		return message{}, err
	}
	attempts, err := b.o.Outbox.Attempts(ctx, w, i.sequence)
	if err != nil {
		return message{}, err
	}
	body, err := b.o.Body(ctx, e, attempts[max(len(attempts)-webhook.MaxAttempts, 0):])
	return message{e.ID, body}, err
}

func (b *bodies) first(ctx context.Context, sequence int64) (message, error) {
	b.mu.Lock()
	one := b.kept[sequence]
	if one == nil {
		one = &firstMessage{}
		b.kept[sequence] = one
		if b.order = append(b.order, sequence); len(b.order) > keptBodies {
			delete(b.kept, b.order[0])
			b.order = b.order[1:]
		}
	}
	b.mu.Unlock()
	one.once.Do(func() {
		var e event.Event
		if e, one.err = b.event(ctx, sequence); one.err == nil {
			one.event = e.ID
			one.body, one.err = b.o.Body(ctx, e, nil)
		}
	})
	if one.err != nil { // it is tried again
		b.mu.Lock()
		delete(b.kept, sequence)
		b.mu.Unlock()
	}
	return one.message, one.err
}

func (b *bodies) event(ctx context.Context, sequence int64) (event.Event, error) {
	found, err := b.o.Outbox.ListEvents(ctx, event.Query{After: sequence - 1, Before: sequence + 1, Limit: 1})
	if err != nil {
		return event.Event{}, err
	}
	if len(found) == 0 {
		return event.Event{}, fault.New(fault.NotFound, "the event is not kept any more")
	}
	return found[0], nil
}
