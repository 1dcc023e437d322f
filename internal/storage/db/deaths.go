package db

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"millrace/internal/id"
)

// What is kept of a job in its metadata: how often its process died of it, and how often it died while the job ran.
const (
	crashes = "millrace_crashes"
	deaths  = "millrace_deaths"
)

// CrashesOf reads from a job's metadata how often BlameJob has named it.
func CrashesOf(metadata []byte) int {
	var m struct {
		Crashes int `json:"millrace_crashes"`
	}
	if json.Unmarshal(metadata, &m) != nil { // River's own form; never of anybody else
		return 0
	}
	return m.Crashes
}

// BlameJob notes that a process died of a job, whatever has become of the job meanwhile.
func (d *DB) BlameJob(ctx context.Context, job int64) error {
	_, err := d.write.NewRaw("UPDATE river_job SET metadata = "+d.engine.countUp(crashes)+" WHERE id = ?",
		job).Exec(ctx)
	if err != nil {
		return fmt.Errorf("blame job: %w", err)
	}
	return nil
}

// restAfter is how many deaths of its process a job takes part in before it rests ahead of the next attempt. Anyone who
// kills processes is no fault of the job's; what can't be told from that is the kernel that ends a process for its
// memory, which then happens less and less often.
const (
	restAfter   = 10
	firstRest   = 2 * time.Second
	longestRest = 10 * time.Minute
)

// rest is for how long, after that many deaths.
func rest(deaths int) time.Duration {
	pause := time.Duration(0)
	for n := restAfter; n < deaths && pause < longestRest; n++ {
		pause = max(firstRest, 2*pause)
	}
	return min(pause, longestRest)
}

// ReleaseJobs gives the jobs back that a dead node was working on, so that they are taken up at once, and notes
// that the node has none. What was broken off is no attempt. River itself would wait for an hour or, without a timeout,
// for ever. Never call it for a node that may be alive.
func (d *DB) ReleaseJobs(ctx context.Context, node id.Node) (int, error) {
	var running []struct {
		ID     int64 `bun:"id"`
		Deaths int   `bun:"deaths"`
	}
	err := d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		err := t.NewRaw("SELECT id, "+d.engine.count(deaths)+" AS deaths FROM river_job WHERE state = 'running' AND "+
			d.engine.lastAttempt()+" = ?", string(node)).
			Scan(ctx, &running)
		if err != nil {
			return err
		}
		for _, j := range running {
			_, err = t.NewRaw("UPDATE river_job SET state = 'available', attempt = CASE WHEN attempt > 0 THEN "+
				"attempt - 1 ELSE 0 END, metadata = "+
				d.engine.countUp(deaths)+", scheduled_at = "+d.engine.later()+" WHERE id = ?",
				rest(j.Deaths+1).Milliseconds(), j.ID).Exec(ctx)
			if err != nil {
				return err
			}
		}
		_, err = t.NewRaw("UPDATE nodes SET seen_at = 0 WHERE id = ?", string(node)).Exec(ctx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("release jobs of a dead node: %w", err)
	}
	return len(running), nil
}
