package encode

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"millrace/internal/fault"
)

// Budget keeps children from taking more of the processor than there is: who does not fit waits, in the order of
// priority and then of arrival. What nobody waits for (Ahead, Background) has shares of its own, so that it is never in
// the way of what somebody does: the system gives it what the rest leaves: half the cores for the one and all for the
// other, so that a short file does not wait for a long one. So has what a file is encoded for before it is an asset
// (Ingest): it takes hours, and viewers go first. What is live can't wait: it is let in or not, by a share of its own.
type Budget struct{ foreground, ahead, ingest, background, live *share }

// BudgetOptions are sizes in cores.
type BudgetOptions struct {
	Cores      int // of the machine, at least 1
	Background int // zero means Cores
}

// liveShare is how many rungs of live streams are encoded at once for each core: one of 480p takes a third of one or
// so, and another encoder takes over from the last one before that has ended.
const liveShare = 4

// maxWaiting is how many may wait for a share: the next one would wait for minutes.
const maxWaiting = 256

// NewBudget makes a budget of which nothing is taken.
func NewBudget(opts BudgetOptions) *Budget {
	cores := max(1, opts.Cores)
	background := opts.Background
	if background <= 0 {
		background = cores
	}
	half := max(1, cores/2)
	of := func(size int) *share { return &share{size: size, free: size} }
	return &Budget{
		foreground: of(cores),
		ahead:      of(half),
		ingest:     of(cores),
		background: of(background),
		live:       of(liveShare * cores),
	}
}

// Cores is how many children may run that somebody waits for.
func (b *Budget) Cores() int { return b.foreground.size }

// Busy is how much of each share is taken, from 0 to 1.
func (b *Budget) Busy() map[string]float64 {
	of := func(s *share) float64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return float64(s.size-s.free) / float64(s.size)
	}
	return map[string]float64{
		"viewers": of(b.foreground), "ahead": of(b.ahead), "ingest": of(b.ingest), "background": of(b.background),
		"live": of(b.live),
	}
}

// Acquire waits for weight cores of the share that p takes from; more than the whole share counts as the whole. release
// is called once, when the child has ended. fault.Unavailable says that too many wait already.
func (b *Budget) Acquire(ctx context.Context, p Priority, weight int) (release func(), err error) {
	return b.AcquirePart(ctx, p, weight, 0)
}

// AcquirePart is Acquire for a part of work of which so much is left. Of such parts with one priority those of work
// that is done soonest go first, so that a minute of sound does not wait for ten hours of it, and one of two that are
// as long is done before the other begins; but none is passed by more than mostPasses. left 0: nobody knows.
func (b *Budget) AcquirePart(
	ctx context.Context, p Priority, weight int, left time.Duration,
) (release func(), err error) {
	return b.share(p).acquire(ctx, p, weight, left)
}

// TryAcquire is Acquire for those who can't wait, such as a live stream; ok is false when the share is taken.
func (b *Budget) TryAcquire(p Priority, weight int) (release func(), ok bool) {
	return b.share(p).try(weight)
}

func (b *Budget) share(p Priority) *share {
	switch p {
	case Background:
		return b.background
	case Ingest:
		return b.ingest
	case Ahead:
		return b.ahead
	case Live:
		return b.live
	case Images, OnDemand, FirstPlay:
	}
	return b.foreground
}

// share is a number of cores and who waits for some of them.
type share struct {
	size int

	mu      sync.Mutex
	free    int
	waiting []*waiter // by priority, then by arrival
}

type waiter struct {
	priority Priority
	weight   int
	left     time.Duration // of the work that it is a part of; 0: nobody knows
	passed   int           // how many of less work have gone before it
	let      chan struct{} // closed when it may go on
}

// mostPasses is how many parts of shorter work go before one of longer work that has waited for longer: it gets on, a
// part for so many, however much short work there is.
const mostPasses = 16

func (s *share) clamp(weight int) int { return min(max(1, weight), s.size) }

func (s *share) try(weight int) (release func(), ok bool) {
	weight = s.clamp(weight)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > 0 || s.free < weight {
		return nil, false
	}
	s.free -= weight
	return func() { s.giveBack(weight) }, true
}

func (s *share) acquire(
	ctx context.Context, p Priority, weight int, left time.Duration,
) (release func(), err error) {
	w := &waiter{priority: p, weight: s.clamp(weight), left: left, let: make(chan struct{})}
	s.mu.Lock()
	if len(s.waiting) >= maxWaiting {
		s.mu.Unlock()
		return nil, fault.New(fault.Unavailable, "the service is busy encoding: ask again in a moment")
	}
	s.line(w)
	s.admit()
	s.mu.Unlock()
	select {
	case <-w.let:
	case <-ctx.Done():
		if !s.leave(w) {
			s.giveBack(w.weight) // let in at the same moment
		}
		return nil, fmt.Errorf("wait for a free processor: %w", context.Cause(ctx))
	}
	return func() { s.giveBack(w.weight) }, nil
}

// line gives a waiter its place among the others.
func (s *share) line(w *waiter) {
	at, _ := slices.BinarySearchFunc(s.waiting, w, func(e, w *waiter) int {
		if e.priority >= w.priority {
			return -1
		}
		return 1
	})
	for ; at > 0 && w.passes(s.waiting[at-1]); at-- {
		s.waiting[at-1].passed++
	}
	s.waiting = slices.Insert(s.waiting, at, w)
}

// passes reports whether w goes before one that has waited for longer.
func (w *waiter) passes(e *waiter) bool {
	return w.left > 0 && e.left > w.left && e.priority == w.priority && e.passed < mostPasses
}

// leave takes a waiter out; false when it was let in.
func (s *share) leave(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, w)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.admit() // it may have stood in front of somebody who fits
	return true
}

func (s *share) giveBack(weight int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += weight
	s.admit()
}

// admit lets in the first one, while there is room: a heavy one is not passed by lighter ones, or it might wait for
// ever.
func (s *share) admit() {
	for len(s.waiting) > 0 && s.waiting[0].weight <= s.free {
		s.free -= s.waiting[0].weight
		close(s.waiting[0].let)
		s.waiting = slices.Delete(s.waiting, 0, 1)
	}
}
