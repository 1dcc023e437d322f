package db

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"millrace/internal/control/job"
	"millrace/internal/masterkey"
)

// quietFor is a listener that hears nothing: it calls then at the end of each time that it is asked.
type quietFor struct {
	riverdriver.Listener
	then func()
}

func (q quietFor) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	<-ctx.Done()
	err := ctx.Err()
	q.then()
	return nil, err
}

// counted is River's executor, and how often it was asked for jobs.
type counted struct {
	riverdriver.Executor
	asked int
}

func (c *counted) JobGetAvailable(
	ctx context.Context, p *riverdriver.JobGetAvailableParams,
) ([]*rivertype.JobRow, error) {
	c.asked++
	return c.Executor.JobGetAvailable(ctx, p)
}

// TestJobsAreClaimedWhereThereAreSome: a queue without jobs costs no writer anything.
func TestJobsAreClaimedWhereThereAreSome(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Options{
		URL: "sqlite://" + filepath.Join(t.TempDir(), "db.sqlite"), MasterKey: masterkey.Of(masterkey.Key{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	e, _ := d.engine.(audited).engine.(*sqliteEngine)
	river := &counted{Executor: riversqlite.New(e.write).GetExecutor()}
	x := quietExecutor{river, e.read}
	claim := func(queue job.Queue, want, asked int) {
		t.Helper()
		got, err := x.JobGetAvailable(t.Context(), &riverdriver.JobGetAvailableParams{
			ClientID: "here", MaxToLock: 10, MaxAttemptedBy: 10, Queue: string(queue),
		})
		if err != nil || len(got) != want || river.asked != asked {
			t.Errorf("%d jobs of %s, %v; River was asked %d times", len(got), queue, err, river.asked)
		}
	}
	claim(job.Clips, 0, 0)
	if err := d.Enqueue(t.Context(), job.Insert{Kind: "a", Queue: job.Clips}); err != nil {
		t.Fatal(err)
	}
	claim(job.Prompt, 0, 0)
	claim(job.Clips, 1, 1)
	claim(job.Clips, 0, 1)
}

// TestListenerIsInterrupted: River interrupts its listener every five seconds and when it listens for something else,
// and wants to be told that it did. Anything else is a connection that broke: it logs an error, and hears of nothing
// for a while.
func TestListenerIsInterrupted(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{
		"while it asks": listenFor / 2, "when it has asked": listenFor, "while it rests": listenFor + listenEvery/2,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				began := time.Now()
				if wait != listenFor {
					time.AfterFunc(wait, interrupt)
				}
				l := quietListener{jobs: makeNewJobs(), Listener: quietFor{then: func() {
					if time.Since(began) >= wait {
						interrupt()
					}
				}}}
				if _, err := l.WaitForNotification(ctx); !errors.Is(err, context.Canceled) ||
					time.Since(began) != wait {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		})
	}
}
