package db_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"millrace/internal/control/job"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

type runner struct {
	river.WorkerDefaults[db.JobArgs]
	ran chan string
}

func (r *runner) Work(_ context.Context, j *river.Job[db.JobArgs]) error {
	r.ran <- j.Args.Key
	return nil
}

// TestInsertedJobsAreHeardOf has no poll to fall back on: what starts a job is the news that it was inserted. On SQLite
// River tells that only once in a while, so several are.
func TestInsertedJobsAreHeardOf(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		running(t, d)
		workers, r := river.NewWorkers(), &runner{ran: make(chan string, 400)}
		river.AddWorkerArgs(workers, db.ArgsOf("sing"), r)
		client, err := d.JobClient(&river.Config{
			Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}, Workers: workers,
			FetchCooldown: 10 * time.Millisecond, FetchPollInterval: time.Hour,
		})
		must(t, err)
		must(t, client.Start(context.WithoutCancel(t.Context())))
		defer func() { must(t, client.StopAndCancel(context.WithoutCancel(t.Context()))) }()
		limit := time.After(3 * time.Minute)
		for n, heard := 0, 0; heard < 3; n++ {
			must(t, d.Enqueue(t.Context(), job.New("sing", fmt.Sprint(n), struct{}{})))
			select {
			case <-r.ran:
				heard++
			case <-time.After(150 * time.Millisecond):
			case <-limit:
				t.Fatalf("%d of %d jobs were heard of", heard, n+1)
			}
		}
	})
}
