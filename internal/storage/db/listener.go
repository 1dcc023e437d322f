package db

import (
	"context"
	"errors"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
)

// quietDriver is River's driver for SQLite, but with a listener that asks for notifications when there may be some. River's own asks
// twenty times a second for as long as the process lives, on the one connection that writes: a twentieth of what thirty live streams
// cost, and every writer has to wait for it.
type quietDriver struct {
	*riversqlite.Driver
	news <-chan struct{} // jobs were inserted by this process, which is the only one on an SQLite file that does
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
