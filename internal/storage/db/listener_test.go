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

// TestInsertedJobsAreHeardOf has no poll to fall back on: what starts a job is the news that it was inserted, as often as it is.
func TestInsertedJobsAreHeardOf(t *testing.T) {
	t.Parallel()
	for name, fresh := range dbtest.Engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dbtest.Open(t, fresh(t))
			workers, r := river.NewWorkers(), &runner{ran: make(chan string, 400)}
			river.AddWorkerArgs(workers, db.ArgsOf("sing"), r)
			client, err := d.JobClient(&river.Config{
				Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}, Workers: workers,
				FetchCooldown: 10 * time.Millisecond, FetchPollInterval: time.Hour,
			})
			must(t, err)
			must(t, client.Start(context.WithoutCancel(t.Context())))
			defer func() { must(t, client.StopAndCancel(context.WithoutCancel(t.Context()))) }()
			limit := time.After(30 * time.Second)
			for n, heard := 0, false; !heard; n++ { // what is inserted before the listener stands is not heard of
				must(t, d.Enqueue(t.Context(), job.New("sing", fmt.Sprint("early ", n), struct{}{})))
				select {
				case <-r.ran:
					heard = true
				case <-time.After(100 * time.Millisecond):
				case <-limit:
					t.Fatal("no job was heard of")
				}
			}
			for _, key := range []string{"a", "b", "c"} {
				must(t, d.Enqueue(t.Context(), job.New("sing", key, struct{}{})))
				for got := ""; got != key; {
					select {
					case got = <-r.ran:
					case <-limit:
						t.Fatalf("job %q was not heard of", key)
					}
				}
			}
		})
	}
}
