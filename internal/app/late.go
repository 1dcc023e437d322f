package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"millrace/internal/config"
)

// lastGrace is how much longer than the services' own time to stop all of it may take. The services wait for a database
// or a storage that does not respond one after the other, and the database's connections for it without end.
const lastGrace = 10 * time.Second

var errLate = errors.New("the service has not stopped in time and is cut off: what it has not told is made good at " +
	"the next start")

// serve runs the service until ctx ends, and then for as long as it takes to stop, within bounds.
func serve(ctx context.Context, cfg config.Config, log *slog.Logger, out io.Writer) error {
	told, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	err := within(told, cfg.ShutdownTimeout+lastGrace, func() error { return serveAll(told, leave, cfg, log, out) })
	if ctx.Err() == nil && told.Err() != nil { // it has told itself
		err = errors.Join(context.Cause(told), err)
	}
	return err
}

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
