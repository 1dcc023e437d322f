package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
)

// quietDriver is River's driver for SQLite, but for two things that River does for as long as the process lives, on the
// one connection that writes, so that every writer has to wait for them: its listener is told of new jobs, and asks for
// other notifications once a second, River's own twenty times; and jobs are claimed where there are some, River's own
// asks for those of each queue once a second by a statement that writes, and has to be parsed each time. Either was a
// twentieth of what thirty live streams cost.
type quietDriver struct {
	*riversqlite.Driver
	jobs *newJobs // of this process, which is the only one on an SQLite file that inserts any
	read *sql.DB
}

// someJobs is whether a queue has jobs that may be claimed.
const someJobs = "SELECT EXISTS (SELECT 1 FROM river_job WHERE state = 'available' AND queue = ?)"

// GetExecutor implements riverdriver.Driver.
func (q quietDriver) GetExecutor() riverdriver.Executor {
	return quietExecutor{q.Driver.GetExecutor(), q.read}
}

type quietExecutor struct {
	riverdriver.Executor
	read *sql.DB
}

// JobGetAvailable implements riverdriver.Executor.
func (q quietExecutor) JobGetAvailable(
	ctx context.Context, params *riverdriver.JobGetAvailableParams,
) ([]*rivertype.JobRow, error) {
	some := false
	if err := q.read.QueryRowContext(ctx, someJobs, params.Queue).Scan(&some); err != nil {
		return nil, fmt.Errorf("look for jobs: %w", err)
	}
	if !some {
		return nil, nil
	}
	return q.Executor.JobGetAvailable(ctx, params) //nolint:wrapcheck // River's own
}

// newJobs is which queues have new jobs, until River's listener has told of them. River's own notes in the database
// leave out most of those that follow one another, and are read by asking again and again.
type newJobs struct {
	some chan struct{} // one token: there may be some

	mu     sync.Mutex
	queues map[string]bool
}

func makeNewJobs() *newJobs {
	return &newJobs{some: make(chan struct{}, 1), queues: map[string]bool{}}
}

func (n *newJobs) add(queues map[string]bool) {
	n.mu.Lock()
	maps.Copy(n.queues, queues)
	n.mu.Unlock()
	select {
	case n.some <- struct{}{}:
	default:
	}
}

// take gives a queue that has new jobs; "": none has.
func (n *newJobs) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for queue := range n.queues {
		delete(n.queues, queue)
		return queue
	}
	return ""
}

const (
	// listenEvery is how often River's own notes to itself are looked for.
	listenEvery = time.Second
	// listenFor is how long it is asked for them: twice, because the response to the first may be late.
	listenFor = 60 * time.Millisecond
	// insertTopic is that of River's notifications of new jobs.
	insertTopic = "river_insert"
)

// GetListener implements riverdriver.Driver.
func (q quietDriver) GetListener(params *riverdriver.GetListenenerParams) riverdriver.Listener {
	return &quietListener{Listener: q.Driver.GetListener(params), jobs: q.jobs}
}

type quietListener struct {
	riverdriver.Listener
	jobs  *newJobs
	asked time.Time // when its own notes were last looked for
}

// WaitForNotification implements riverdriver.Listener.
func (q *quietListener) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	for {
		if queue := q.jobs.take(); queue != "" {
			return &riverdriver.Notification{Topic: insertTopic, Payload: fmt.Sprintf(`{"queue": %q}`, queue)}, nil
		}
		t := time.NewTimer(listenEvery - time.Since(q.asked))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		case <-q.jobs.some:
			t.Stop()
		case <-t.C:
			if n, err := q.ask(ctx); n != nil || err != nil {
				return n, err
			}
		}
	}
}

// ask looks for River's own notes; nil: there are none.
func (q *quietListener) ask(ctx context.Context) (*riverdriver.Notification, error) {
	within, stop := context.WithTimeout(ctx, listenFor)
	defer stop()
	n, err := q.Listener.WaitForNotification(within)
	switch {
	case err == nil:
		return n, nil
	case ctx.Err() != nil: // our own deadline may have passed just before, which River takes for a broken connection
		return nil, ctx.Err()
	case !errors.Is(err, context.DeadlineExceeded):
		return nil, err //nolint:wrapcheck // River's own
	}
	q.asked = time.Now()
	return nil, nil //nolint:nilnil // the documented value of "none"
}
