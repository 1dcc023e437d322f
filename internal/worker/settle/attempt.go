package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/internal/control/job"
	"millrace/internal/fault"
)

// Try makes an attempt. A panic is an error, and so is it that the process has died of the job too often: what is made gets
// an end. what is a sentence's beginning: "the file can't be made".
func Try(j job.Job, what string, attempt func() error) (err error) {
	if j.Deadly() {
		return fault.New(fault.Invalid, "%s: the service ended each time it tried", what)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("job %s panicked: %v", j.Kind, p)
		}
	}()
	return attempt()
}

// Ending is what may become of something that a job makes, besides that it is made.
type Ending struct {
	Gone func(ctx context.Context) (bool, error) // it is not wanted any more
	Drop func(ctx context.Context) error         // deletes what there is of it: it is gone
	// Fail tells why it will not be made, and deletes what there is of it.
	Fail func(ctx context.Context, why error) error
}

// lastWords is what telling of a failure may take, also when the service stops.
const lastWords = time.Minute

// Of gives the end of a job whose attempt ended in err.
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
	if !fault.Permanent(err) && !j.Last() {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	failed := e.Fail(ctx, err)
	if Absent(failed) {
		return e.Drop(ctx)
	}
	if failed != nil { // the job has to come again for that, whatever was at fault
		return fmt.Errorf("end what %q has ended: %w", err.Error(), failed)
	}
	return err
}
