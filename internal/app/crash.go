package app

import (
	"context"
	"path/filepath"

	"millrace/internal/crash"
)

// watchCrashes tells of the crash of the process before this one, and has its own written down.
func (n *node) watchCrashes(ctx context.Context) error {
	before, err := crash.Watch(filepath.Join(n.cfg.DataDir, "crash"))
	if err != nil || before == nil {
		return err
	}
	n.died = before.Job
	n.log.ErrorContext(ctx, "the process before this one crashed", "reason", before.Reason, "job_id", before.Job,
		"stack", before.Trace)
	return nil
}
