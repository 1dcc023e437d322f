package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
)

// quietDriver is River's driver for SQLite, but for two things that River does for as long as the process lives, on the
// one connection that writes, so that every writer has to wait for them: its listener asks for notifications when there
// may be some, River's own twenty times a second; and jobs are claimed where there are some, River's own asks for those
// of each queue once a second by a statement that writes, and has to be parsed each time. Either was a twentieth of what
// thirty live streams cost.
type quietDriver struct {
	*riversqlite.Driver
	news <-chan struct{} // jobs were inserted by this process, which is the only one on an SQLite file that does
	read *sql.DB
}

// someJobs is whether a queue has jobs that may be claimed.
const someJobs = "SELECT EXISTS (SELECT 1 FROM river_job WHERE state = 'available' AND queue = ?)"

// GetExecutor implements riverdriver.Driver.
func (d quietDriver) GetExecutor() riverdriver.Executor {
	return quietExecutor{d.Driver.GetExecutor(), d.read}
}

type quietExecutor struct {
	riverdriver.Executor
	read *sql.DB
}

// JobGetAvailable implements riverdriver.Executor.
func (e quietExecutor) JobGetAvailable(
	ctx context.Context, params *riverdriver.JobGetAvailableParams,
) ([]*rivertype.JobRow, error) {
	some := false
	if err := e.read.QueryRowContext(ctx, someJobs, params.Queue).Scan(&some); err != nil {
		return nil, fmt.Errorf("look for jobs: %w", err)
	}
	if !some {
		return nil, nil
	}
	return e.Executor.JobGetAvailable(ctx, params) //nolint:wrapcheck // River's own
}

const (
	// listenEvery finds what this process was not told of: River's own notes to itself.
	listenEvery = time.Second
	// listenFor is how long it is asked when there may be something: twice, because the response to the first may be late.
	listenFor = 60 * time.Millisecond
)

// GetListener implements riverdriver.Driver.
func (d quietDriver) GetListener(params *riverdriver.GetListenenerParams) riverdriver.Listener {
	return quietListener{d.Driver.GetListener(params), d.news}
}

type quietListener struct {
	riverdriver.Listener
	news <-chan struct{}
}

// WaitForNotification implements riverdriver.Listener.
func (l quietListener) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	for {
		ask, stop := context.WithTimeout(ctx, listenFor)
		n, err := l.Listener.WaitForNotification(ask)
		stop()
		switch {
		case err == nil:
			return n, nil
		case ctx.Err() != nil: // our own deadline may have passed just before, which River takes for a broken connection
			return nil, ctx.Err()
		case !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		}
		t := time.NewTimer(listenEvery)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		case <-l.news:
			t.Stop()
		case <-t.C:
		}
	}
}
