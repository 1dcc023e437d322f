// Package sweep finds resources that no job works on any more, so that no asset, track, file or master stays preparing for ever. A job that
// could not record its end is queued again with all its attempts, and records it then.
// Its one goroutine is Run.
package sweep

import (
	"context"
	"log/slog"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
)

// Queue takes jobs; one whose kind and key are unfinished already is skipped.
type Queue interface {
	Enqueue(ctx context.Context, jobs ...job.Insert) error
}

// Sweeper asks for the jobs again that unfinished assets and what they have need.
type Sweeper struct {
	Assets asset.Work
	Queue  Queue
	Every  time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

// minIdle is how long an asset must have been left alone.
const minIdle = time.Minute

// Name implements lifecycle.Service.
func (*Sweeper) Name() string { return "sweeper" }

// Run implements lifecycle.Service.
func (s *Sweeper) Run(ctx context.Context) error {
	t := time.NewTicker(s.Every)
	defer t.Stop()
	for {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "look for unfinished assets", "error", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
		}
	}
}

func (s *Sweeper) sweep(ctx context.Context) error {
	all, err := s.Assets.Unfinished(ctx)
	if err != nil {
		return err
	}
	now := s.Now()
	for _, a := range all {
		if now.Sub(a.UpdatedAt) < minIdle {
			continue
		}
		if jobs := a.Left(now); len(jobs) > 0 {
			if err := s.Queue.Enqueue(ctx, jobs...); err != nil {
				return err
			}
		}
	}
	return nil
}
