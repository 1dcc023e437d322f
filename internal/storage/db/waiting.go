package db

import (
	"context"
	"fmt"
	"time"

	"millrace/internal/control/job"
)

// JobsWaiting says of each queue how many jobs could run now, whichever node works on it, and how long the first of
// them has waited. Queues in which none waits are left out.
func JobsWaiting(ctx context.Context, d *DB) ([]job.Waiting, error) {
	age, due := "EXTRACT(EPOCH FROM clock_timestamp() - MIN(scheduled_at))", "scheduled_at <= clock_timestamp()"
	if d.engine.alone() {
		age = "(julianday('now') - julianday(MIN(scheduled_at))) * 86400"
		due = "julianday(scheduled_at) <= julianday('now')"
	}
	var rows []struct {
		Queue string  `bun:"queue"`
		Jobs  int     `bun:"jobs"`
		Age   float64 `bun:"age"`
	}
	err := d.read.NewRaw("SELECT queue, COUNT(*) AS jobs, "+age+" AS age FROM river_job WHERE state = 'available' "+
		"OR state IN ('scheduled', 'retryable') AND "+due+" GROUP BY queue ORDER BY queue").Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("count jobs that wait: %w", err)
	}
	out := make([]job.Waiting, 0, len(rows))
	for _, r := range rows {
		out = append(out, job.Waiting{
			Queue: job.Queue(r.Queue), Jobs: r.Jobs, Oldest: time.Duration(max(r.Age, 0) * float64(time.Second)),
		})
	}
	return out, nil
}
