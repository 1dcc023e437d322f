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

// TestInsertedJobsAreHeardOf has no poll to fall back on: what starts a job is the news that it was inserted, of each
// one.
func TestInsertedJobsAreHeardOf(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		running(t, d)
		workers, r := river.NewWorkers(), &runner{ran: make(chan string, 400)}
		river.AddWorkerArgs(workers, db.ArgsOf("sing"), r)
		client, err := d.JobClient(&river.Config{
			Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}}, Workers: workers,
			FetchCooldown: 10 * time.Millisecond, FetchPollInterval: time.Hour,
		})
		must(t, err)
		must(t, client.Start(context.WithoutCancel(t.Context())))
		defer func() { must(t, client.StopAndCancel(context.WithoutCancel(t.Context()))) }()
		insert := func(n int) { must(t, d.Enqueue(t.Context(), job.New("sing", fmt.Sprint(n), struct{}{}))) }
		for listens := false; !listens; { // soon
			insert(0)
			select {
			case <-r.ran:
				listens = true
			case <-time.After(150 * time.Millisecond):
			}
		}
		for n := 1; n <= 50; n++ {
			insert(n)
			for ran := ""; ran != fmt.Sprint(n); {
				select {
				case ran = <-r.ran:
				case <-time.After(time.Minute):
					t.Fatalf("job %d was not heard of", n)
				}
			}
		}
	})
}
