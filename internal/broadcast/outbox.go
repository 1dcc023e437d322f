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
	at    time.Time     // not before
	limit time.Duration // of the next attempt; patience when 0
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	// patience bounds a first attempt, so that a database that hangs does not hold everything else up. A message is
	// several calls, so one that a slow database has not let come to its end is given twice as long each time, up to
	// mostPatience.
	patience     = 10 * time.Second
	mostPatience = time.Minute
)

func (o *outbox) add(what string, do func(ctx context.Context) error) {
	o.list = append(o.list, message{what: what, do: do})
}

// run delivers what is due; failed is told of every attempt that will be made again, left of those that will not.
func (o *outbox) run(ctx context.Context, clock func() time.Time, failed, left func(what string, err error)) {
	for len(o.list) > 0 && !clock().Before(o.at) {
		head := o.list[0]
		o.limit = max(o.limit, patience)
		try, cancel := context.WithTimeout(ctx, o.limit)
		err := head.do(try)
		if err != nil && try.Err() != nil {
			o.limit = min(2*o.limit, mostPatience)
		}
		cancel()
		if err != nil && !fault.Permanent(err) {
			o.pause = min(max(2*o.pause, firstPause), lastPause)
			o.at = clock().Add(o.pause)
			failed(head.what, err)
			return
		}
		if err != nil {
			left(head.what, err)
		}
		o.list, o.pause, o.limit = o.list[1:], 0, 0
	}
}

// due is when the next attempt is made; false when there is nothing to do.
func (o *outbox) due() (time.Time, bool) { return o.at, len(o.list) > 0 }
