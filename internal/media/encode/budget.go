package encode

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// Budget keeps children from taking more of the processor than there is. Background work has a share of its own, as it only
// gets what the rest leaves: by default half the cores, so one job at a time on two.
type Budget struct {
	foreground, background         *semaphore.Weighted
	foregroundSize, backgroundSize int64
}

// BudgetOptions are sizes in cores.
type BudgetOptions struct {
	Cores      int // of the machine, at least 1
	Background int // zero means half of Cores, at least 1
}

// NewBudget makes a budget of which nothing is taken.
func NewBudget(opts BudgetOptions) *Budget {
	cores := max(1, opts.Cores)
	background := opts.Background
	if background <= 0 {
		background = max(1, cores/2)
	}
	return &Budget{
		foreground: semaphore.NewWeighted(int64(cores)), foregroundSize: int64(cores),
		background: semaphore.NewWeighted(int64(background)), backgroundSize: int64(background),
	}
}

// Acquire waits, first come first served, for weight cores of the share that p takes from; more than the whole share counts
// as the whole. release is called once, when the child has ended.
func (b *Budget) Acquire(ctx context.Context, p Priority, weight int) (release func(), err error) {
	share, n := b.share(p, weight)
	if err := share.Acquire(ctx, n); err != nil {
		return nil, fmt.Errorf("wait for a free processor: %w", context.Cause(ctx))
	}
	return func() { share.Release(n) }, nil
}

// TryAcquire is Acquire for those who can't wait, such as a live stream; ok is false when the share is taken.
func (b *Budget) TryAcquire(p Priority, weight int) (release func(), ok bool) {
	share, n := b.share(p, weight)
	if !share.TryAcquire(n) {
		return nil, false
	}
	return func() { share.Release(n) }, true
}

func (b *Budget) share(p Priority, weight int) (*semaphore.Weighted, int64) {
	n := int64(max(1, weight))
	if p == Background {
		return b.background, min(n, b.backgroundSize)
	}
	return b.foreground, min(n, b.foregroundSize)
}
