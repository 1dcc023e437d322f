package broadcast

import (
	"context"
	"time"

	"millrace/internal/fault"
)

// message is one thing to tell the control plane.
type message struct {
	what string
	do   func(ctx context.Context) error
}

// outbox delivers messages one after the other: facts reach the control plane in the order in which they happened. One
// that fails is sent again, with growing pauses, before the next one; one that can never succeed is left out. Used by
// one goroutine.
type outbox struct {
	list  []message
	pause time.Duration
	at    time.Time // not before
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	// patience bounds one call of the database, so that one that hangs does not hold everything else up.
	patience = 10 * time.Second
)

func (e *outbox) add(what string, do func(ctx context.Context) error) {
	e.list = append(e.list, message{what: what, do: do})
}

// run delivers what is due; failed is told of every attempt that will be made again, left of those that will not.
func (e *outbox) run(ctx context.Context, clock func() time.Time, failed, left func(what string, err error)) {
	for len(e.list) > 0 && !clock().Before(e.at) {
		head := e.list[0]
		try, cancel := context.WithTimeout(ctx, patience)
		err := head.do(try)
		cancel()
		if err != nil && !fault.Permanent(err) {
			e.pause = min(max(2*e.pause, firstPause), lastPause)
			e.at = clock().Add(e.pause)
			failed(head.what, err)
			return
		}
		if err != nil {
			left(head.what, err)
		}
		e.list, e.pause = e.list[1:], 0
	}
}

// due is when the next attempt is made; false when there is nothing to do.
func (e *outbox) due() (time.Time, bool) { return e.at, len(e.list) > 0 }
