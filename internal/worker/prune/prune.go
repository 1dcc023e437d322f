// Package prune deletes rows whose retention time is over, a few at a time, so that no writer waits for it. Its one
// goroutine is Run.
package prune

import (
	"context"
	"log/slog"
	"time"
)

// Pruner keeps something for a time.
type Pruner struct {
	What string // for the log: "events"
	// Prune removes what is older than a time, at most limit of it, and gives how many there were.
	Prune  func(ctx context.Context, before time.Time, limit int) (int, error)
	Keep   time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

const (
	every = 10 * time.Minute
	batch = 100                   // what one transaction removes: some milliseconds
	pause = 50 * time.Millisecond // between two, for others who write
)

// Name implements lifecycle.Service.
func (p *Pruner) Name() string { return "pruner of " + p.What }

// Run implements lifecycle.Service.
func (p *Pruner) Run(ctx context.Context) error {
	t := time.NewTimer(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
		}
		next := every
		n, err := p.Prune(ctx, p.Now().Add(-p.Keep), batch)
		if err != nil && ctx.Err() == nil {
			p.Logger.WarnContext(ctx, "remove what is old", "records", p.What, "error", err)
		}
		if err == nil && n == batch {
			next = pause
		}
		t.Reset(next)
	}
}
