package broadcast

import (
	"sync"
)

// mailbox holds what is to be done on one goroutine, in order. Posting never blocks, so it may be done with any lock
// held.
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
