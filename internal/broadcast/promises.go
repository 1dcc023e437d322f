package broadcast

import (
	"sync"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/fault"
)

// promises are what this node has promised others: to take no broadcast of theirs without asking for it.
type promises struct {
	now func() time.Time

	mu     sync.Mutex
	until  map[live.Owner]time.Time
	taking map[live.Owner]int // something is being taken of them, as they seemed dead
}

// mostPromises bounds how many owners something is promised to at a time.
const mostPromises = 1024

func newPromises(now func() time.Time) *promises {
	return &promises{now: now, until: map[live.Owner]time.Time{}, taking: map[live.Owner]int{}}
}

// Promise promises to take no broadcast of an owner without asking it, for PromisedFor. It is fault.Conflict where
// one is just being taken.
func (svc *Service) Promise(o live.Owner) error { return svc.promises.give(o) }

func (p *promises) give(o live.Owner) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for other, until := range p.until {
		if !now.Before(until) {
			delete(p.until, other)
		}
	}
	switch _, has := p.until[o]; {
	case p.taking[o] > 0:
		return fault.New(fault.Conflict, "a broadcast of the node is just being taken")
	case !has && len(p.until) >= mostPromises:
		return fault.New(fault.TooMany, "too many nodes ask for a promise")
	}
	p.until[o] = now.Add(PromisedFor)
	return nil
}

// taker is one that is about to take a broadcast.
type taker struct {
	all *promises
	of  live.Owner // whose it takes; zero: nobody's yet
}

// bound is for how long a broadcast of a dead owner is not to be taken. When it may be nothing is promised to that
// owner until the taker is done.
func (t *taker) bound(o live.Owner) time.Duration {
	p := t.all
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := p.until[o].Sub(p.now()); left > 0 {
		return left
	}
	if t.of != o {
		t.free()
		t.of = o
		p.taking[o]++
	}
	return 0
}

// done says that nothing is taken any more.
func (t *taker) done() {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.free()
}

// free is called with the lock.
func (t *taker) free() {
	if t.of == (live.Owner{}) {
		return
	}
	if t.all.taking[t.of]--; t.all.taking[t.of] <= 0 {
		delete(t.all.taking, t.of)
	}
	t.of = live.Owner{}
}
