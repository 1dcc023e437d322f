package settle

import (
	"context"
	"fmt"

	"millrace/internal/media/encode"
)

// Desk is where files from outside are looked into, a few at a time however many come: the index of one that is made to hurt takes
// hundreds of megabytes. A nil Desk has room for all.
type Desk chan struct{}

// NewDesk has room for so many.
func NewDesk(places int) Desk { return make(Desk, max(1, places)) }

// Examine waits for a place, and has it while look runs.
func (d Desk) Examine(ctx context.Context, look func() error) error {
	if d == nil {
		return look()
	}
	select {
	case d <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait to look into file: %w", context.Cause(ctx))
	}
	defer func() { <-d }()
	return look()
}

// Probe asks ffprobe what a file holds.
func (d Desk) Probe(ctx context.Context, e *encode.Engine, path string, format encode.Format) (info encode.Info, err error) {
	err = d.Examine(ctx, func() (failed error) {
		info, failed = e.Probe(ctx, path, format)
		return failed
	})
	return info, err
}
