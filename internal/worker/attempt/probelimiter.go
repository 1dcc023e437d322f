package attempt

import (
	"context"
	"fmt"

	"millrace/internal/media/encode"
)

// ProbeLimiter bounds how many files from outside are examined at a time: the index of a hostile one takes hundreds of
// megabytes. A nil ProbeLimiter has no bound.
type ProbeLimiter chan struct{}

// NewProbeLimiter returns a limiter to so many files at a time, at least one.
func NewProbeLimiter(places int) ProbeLimiter { return make(ProbeLimiter, max(1, places)) }

// Examine waits for a place, then calls look.
func (p ProbeLimiter) Examine(ctx context.Context, look func() error) error {
	if p == nil {
		return look()
	}
	select {
	case p <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait to look into file: %w", context.Cause(ctx))
	}
	defer func() { <-p }()
	return look()
}

// Probe asks ffprobe what a file holds.
func (p ProbeLimiter) Probe(
	ctx context.Context, e *encode.Engine, path string, format encode.Format,
) (info encode.Info, err error) {
	err = p.Examine(ctx, func() (failed error) {
		info, failed = e.Probe(ctx, path, format)
		return failed
	})
	return info, err
}
