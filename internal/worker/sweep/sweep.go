// Package sweep finds resources that no job works on any more, so that no asset, track, file or master stays in
// preparing and no upload in waiting for ever. A job that could not record its end is queued again with all its
// attempts, and records it then. It also deletes stored parts of uploads that nobody can finish any more. Its one
// goroutine is Run.
package sweep

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/control/upload"
	"millrace/internal/id"
	"millrace/internal/storage/blob"
)

// Queue takes jobs; one whose kind and key are unfinished already is skipped.
type Queue interface {
	Enqueue(ctx context.Context, jobs ...job.Insert) error
}

// Assets is what it asks of assets; asset.Work fits.
type Assets interface {
	// Unfinished lists assets on which work may be left; see asset.Asset.Left.
	Unfinished(ctx context.Context) ([]asset.Asset, error)
}

// Uploads is what it asks of uploads; upload.Work fits.
type Uploads interface {
	Overdue(ctx context.Context, before time.Time, behind upload.Overdue, limit int) ([]upload.Overdue, error)
	Expecting(ctx context.Context, all []id.Media) ([]id.Media, error)
}

// Sweeper asks for the jobs again that unfinished assets and what they have need, and those of uploads.
type Sweeper struct {
	Assets  Assets
	Uploads Uploads
	Store   blob.Store
	// Alone reports whether no other database uses the store: what this one knows nothing of may be the other's.
	Alone  func(ctx context.Context) (bool, error)
	Queue  Queue
	Every  time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

// minIdle is how long an asset or upload must have been left alone.
const minIdle = time.Minute

// Name implements lifecycle.Service.
func (*Sweeper) Name() string { return "sweeper" }

// Run implements lifecycle.Service.
func (s *Sweeper) Run(ctx context.Context) error {
	t := time.NewTicker(s.Every)
	defer t.Stop()
	for {
		if err := errors.Join(s.assets(ctx), s.overdue(ctx), s.abandoned(ctx)); err != nil && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "look for what is unfinished", "error", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
		}
	}
}

// assets asks for the jobs of assets that are left.
func (s *Sweeper) assets(ctx context.Context) error {
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
