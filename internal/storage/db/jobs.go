package db

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/uptrace/bun"

	"millrace/internal/control/job"
	"millrace/internal/id"
	"millrace/internal/trace"
)

// JobArgs is a job of ours as River stores it.
type JobArgs struct {
	kind  string
	Key   string          `json:"key,omitempty" river:"unique"`
	Owner string          `json:"owner,omitempty"`
	Trace string          `json:"trace,omitempty"` // the span that caused it
	Body  json.RawMessage `json:"args"`
}

// Kind is for River.
func (j JobArgs) Kind() string { return j.kind }

// ArgsOf names a kind to River.
func ArgsOf(kind string) JobArgs { return JobArgs{kind: kind} }

// maxAttempts is beyond what any handler allows: the handlers' own limits, which only the worker knows, are kept in
// package queue.
const maxAttempts = 1000

// unfinished are the states in which a job still has its key.
func unfinished() []rivertype.JobState {
	return []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning,
		rivertype.JobStateScheduled,
	}
}

func (t tx) enqueue(ctx context.Context, jobs []job.Insert) error {
	for _, j := range jobs {
		opts := &river.InsertOpts{MaxAttempts: maxAttempts, ScheduledAt: j.At, Queue: string(j.Queue)}
		if j.Key != "" {
			opts.UniqueOpts = river.UniqueOpts{ByArgs: true, ByState: unfinished()}
		}
		if err := t.jobs.insert(ctx, JobArgs{
			kind:  j.Kind,
			Key:   j.Key,
			Owner: j.Owner,
			Trace: trace.Parent(ctx),
			Body:  j.Args,
		}, opts); err != nil {
			return fmt.Errorf("insert job %s: %w", j.Kind, err)
		}
	}
	return nil
}

// Enqueue inserts jobs that belong to no change. One whose kind and key are unfinished already is skipped.
func (d *DB) Enqueue(ctx context.Context, jobs ...job.Insert) error {
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error { return t.enqueue(ctx, jobs) })
}

// Unfinished counts the jobs of a kind and key that have not come to their end.
func (d *DB) Unfinished(ctx context.Context, kind, key string) (int, error) {
	ids, err := d.unfinished(ctx, d.read, kind, key)
	return len(ids), err
}

func (d *DB) unfinished(ctx context.Context, q bun.IDB, kind, key string) ([]int64, error) {
	var ids []int64
	err := q.NewSelect().Table("river_job").Column("id").Where("kind = ?", kind).Where(d.engine.jobKey()+" = ?", key).
		Where("state IN ?", bun.Tuple(unfinished())).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("read jobs %s: %w", kind, err)
	}
	return ids, nil
}

// CancelJobs ends the unfinished jobs of a kind and key: waiting ones at once, a running one within seconds by its
// context. It gives how many there were.
func (d *DB) CancelJobs(ctx context.Context, kind, key string) (int, error) {
	n := 0
	err := d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		ids, err := d.unfinished(ctx, t, kind, key)
		if err != nil {
			return err
		}
		n = len(ids)
		for _, one := range ids {
			if err := t.jobs.cancel(ctx, one); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("cancel jobs %s: %w", kind, err)
	}
	return n, nil
}

// MoveJobs puts jobs of a kind from one queue into another: those that wait, and a running one, which will stand there
// once it waits again.
func (d *DB) MoveJobs(ctx context.Context, kind string, running int64, from, to job.Queue) error {
	waiting := slices.DeleteFunc(unfinished(), func(s rivertype.JobState) bool {
		return s == rivertype.JobStateRunning
	})
	_, err := d.write.NewRaw("UPDATE river_job SET queue = ? WHERE kind = ? AND queue = ? AND (id = ? OR state IN ?)",
		string(to), kind, string(from), running, bun.Tuple(waiting)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("move jobs %s to queue %s: %w", kind, to, err)
	}
	return nil
}

// CancelWanted gives those of the running jobs that somebody has cancelled: on SQLite, and when a notification was
// lost, River does not hear of it.
func (d *DB) CancelWanted(ctx context.Context, running []int64) ([]int64, error) {
	var ids []int64
	err := d.read.NewSelect().Table("river_job").Column("id").Where("id IN ?", bun.Tuple(running)).
		Where(d.engine.cancelled()).Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("read cancelled jobs: %w", err)
	}
	return ids, nil
}

// SeeNode says that node works on jobs, by the database's clock.
func (d *DB) SeeNode(ctx context.Context, node id.Node) error {
	_, err := d.write.NewRaw("INSERT INTO nodes (id, seen_at) VALUES (?, "+d.engine.now()+
		") ON CONFLICT (id) DO UPDATE SET seen_at = EXCLUDED.seen_at", string(node)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write node: %w", err)
	}
	return nil
}

// LostNodes gives the nodes that were not seen for that long and did not take their leave.
func (d *DB) LostNodes(ctx context.Context, silent time.Duration) ([]id.Node, error) {
	return d.nodes(ctx, "seen_at > 0 AND seen_at < ", silent)
}

// LivingNodes gives the others.
func (d *DB) LivingNodes(ctx context.Context, silent time.Duration) ([]id.Node, error) {
	return d.nodes(ctx, "seen_at >= ", silent)
}

func (d *DB) nodes(ctx context.Context, seen string, silent time.Duration) ([]id.Node, error) {
	var ids []id.Node
	err := d.read.NewSelect().Table("nodes").Column("id").Where(seen+d.engine.now()+" - ?", silent.Milliseconds()).
		Order("id").Scan(ctx, &ids)
	if err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	return ids, nil
}
