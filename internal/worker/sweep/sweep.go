// Package sweep looks after assets that nobody works on any more: whatever happened to a job, no asset stays preparing for ever.
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

// Sweeper asks for the jobs again that unfinished assets need.
type Sweeper struct {
	Assets asset.Work
	Queue  Queue
	Every  time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

// settled is how long an asset must have been left alone.
const settled = time.Minute

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
	all, err := s.Assets.Preparing(ctx)
	if err != nil {
		return err
	}
	var jobs []job.Insert
	for _, a := range all {
		if a.IsLive || s.Now().Sub(a.UpdatedAt) < settled {
			continue
		}
		if a.LiveStream != "" {
			jobs = append(jobs, job.New(asset.JobFinish, string(a.ID), asset.FinishArgs{Asset: a.ID}))
		} else {
			jobs = append(jobs, job.New(asset.JobIngest, string(a.ID), asset.IngestArgs{Asset: a.ID}))
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	return s.Queue.Enqueue(ctx, jobs...)
}
