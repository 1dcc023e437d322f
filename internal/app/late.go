package app

import (
	"context"
	"errors"
	"time"
)

// lastGrace is how much longer than the services' own time to stop all of it may take. The services wait for a database
// or a storage that does not respond one after the other, and the database's connections for it without end.
const lastGrace = 10 * time.Second

var errLate = errors.New("the service has not stopped in time and is cut off: what it has not told is made good at " +
	"the next start")

// within runs the service and gives it up some time after ctx has ended. What it leaves behind ends with the process.
func within(ctx context.Context, limit time.Duration, run func() error) error {
	ended, late := make(chan error, 1), make(chan struct{})
	go func() { ended <- run() }()
	unhook := context.AfterFunc(ctx, func() { time.AfterFunc(limit, func() { close(late) }) })
	defer unhook()
	select {
	case err := <-ended:
		return err
	case <-late:
		return errLate
	}
}
