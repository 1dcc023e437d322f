// Package attempt runs the attempts of jobs for the workers: it loads what the job is about, manages its temporary
// files, and decides how the job ends: done, retried, or failed for good.
package attempt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/internal/control/job"
	"millrace/internal/fault"
)

// Run makes an attempt. It returns a panic as an error. A job that the process has died of too often is not tried
// again: that is an error too. what begins its message: "the file can't be made".
func Run(j job.Job, what string, attempt func() error) error {
	if j.Deadly() {
		return fault.New(fault.Invalid, "%s: the service ended each time it tried", what)
	}
	return fault.Guard(attempt)
}

// Ending holds what to do when a job does not make what it should.
type Ending struct {
	Gone func(ctx context.Context) (bool, error) // reports whether it is no longer wanted
	Drop func(ctx context.Context) error         // deletes what is stored of it, when it is no longer wanted
	// Fail records why it will not be made, and deletes what is stored of it.
	Fail func(ctx context.Context, why error) error
	// Outside is how often is tried what fails by a server outside that the owner has named; 0: as often as all else.
	// Its owner is waiting to hear of it, and a trouble of this service may last longer than that one wants to wait.
	Outside int
}

// failTimeout bounds how long it may take to record a failure, also when the service stops.
const failTimeout = time.Minute

// Of ends a job whose attempt returned err, and returns the error that the queue is to see.
func (e Ending) Of(ctx context.Context, j job.Job, err error) error {
	if _, snoozed := errors.AsType[*job.SnoozeError](err); err == nil || snoozed {
		return err
	}
	if gone, unknown := e.Gone(ctx); unknown == nil && gone {
		return e.Drop(ctx)
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return err // stopped: the job is taken up again
	}
	if ctx.Err() == nil && j.Waits(err) {
		return err
	}
	enough := e.Outside > 0 && j.Attempt >= e.Outside && fault.Outside(err)
	if !fault.Permanent(err) && !enough && !j.Last() {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), failTimeout)
	defer cancel()
	failed := e.Fail(ctx, err)
	if Absent(failed) {
		return e.Drop(ctx)
	}
	if failed != nil { // the job has to come again for that, whatever was at fault
		return fmt.Errorf("end what %q has ended: %w", err.Error(), failed)
	}
	if enough && !fault.Permanent(err) {
		return &fault.Error{Kind: fault.Invalid, Messages: fault.ByField(err), Err: err} // it does not come again
	}
	return err
}

// Type is what the API says of an error for which nothing more is tried: whether the owner has to give something else.
func Type(err error) string {
	if fault.Outside(err) {
		return "invalid_input"
	}
	return "internal_error"
}

// Reason returns the messages for the owner of something that could not be made. Errors of the service's own storage
// are not shown to them: they get otherwise.
func Reason(err error, otherwise string) []string {
	if e, ok := errors.AsType[*fault.Error](err); ok && !e.Ours && len(e.Messages) > 0 {
		return fault.Messages(e)
	}
	return []string{otherwise + "; the service's log says why"}
}

// Absent reports whether err says that an asset, or something that belongs to it, was deleted. An object that is
// missing in the service's own storage does not count.
func Absent(err error) bool {
	e, ok := errors.AsType[*fault.Error](err)
	return ok && e.Kind == fault.NotFound && !e.Ours
}

// IgnoreAbsent returns nil if err says that an asset or a track was deleted while a job worked on it, else err.
func IgnoreAbsent(err error) error {
	if Absent(err) {
		return nil
	}
	return err
}
