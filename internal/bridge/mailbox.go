package bridge

import (
	"context"
	"sync"
	"time"

	"millrace/internal/fault"
)

// mailbox holds what is to be done on one goroutine, in order. Posting never blocks, so it may be done with any lock held.
type mailbox struct {
	ready chan struct{} // one token: there is something to take

	mu     sync.Mutex
	closed bool
	jobs   []func()
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

// post adds a job; false when nobody takes any more.
func (m *mailbox) post(job func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.jobs = append(m.jobs, job)
	select {
	case m.ready <- struct{}{}:
	default:
	}
	return true
}

// take gives everything that was posted.
func (m *mailbox) take() []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	jobs := m.jobs
	m.jobs = nil
	return jobs
}

// close refuses what is posted from now on, and gives what was not taken.
func (m *mailbox) close() []func() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	return m.take()
}

// errand is one thing to tell the control plane.
type errand struct {
	what string
	do   func(ctx context.Context) error
}

// errands are run one after the other: facts reach the control plane in the order in which they happened. One that fails is tried
// again, with growing pauses, before the next one has its turn; one that can never succeed is left out. Used by one goroutine.
type errands struct {
	list  []errand
	pause time.Duration
	at    time.Time // not before
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	// patience bounds one call of the database, so that one that hangs does not hold everything else up.
	patience = 10 * time.Second
)

func (e *errands) add(what string, do func(ctx context.Context) error) {
	e.list = append(e.list, errand{what: what, do: do})
}

// run does what is due; failed is told of every attempt that will be made again, left of those that will not.
func (e *errands) run(ctx context.Context, clock func() time.Time, failed, left func(what string, err error)) {
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
func (e *errands) due() (time.Time, bool) { return e.at, len(e.list) > 0 }
