package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"millrace/internal/control/job"
	"millrace/internal/crash"
	"millrace/internal/fault"
	"millrace/internal/storage/db"
	"millrace/internal/trace"
)

const (
	defaultAttempts = 5
	longestDelay    = time.Hour
)

// worker lets River work one kind.
type worker struct {
	river.WorkerDefaults[db.JobArgs]

	handler job.Handler
	queue   *Queue
}

// Timeout is for River; -1 is none.
func (w *worker) Timeout(*river.Job[db.JobArgs]) time.Duration {
	if w.handler.Timeout <= 0 {
		return -1
	}
	return w.handler.Timeout
}

// NextRetry is for River.
func (w *worker) NextRetry(j *river.Job[db.JobArgs]) time.Time {
	return time.Now().Add(delay(j.Attempt, rand.Float64())) //nolint:gosec // spreads load, guards nothing
}

// delay before the attempt after this one: 2 s, 10 s, 30 s, 2 min, 10 min, 30 min, then an hour; spread by up to a
// fifth, so that what failed together does not come back together. spread is from 0 to 1.
func delay(attempt int, spread float64) time.Duration {
	steps := [...]time.Duration{
		2 * time.Second, 10 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		longestDelay,
	}
	step := steps[min(max(attempt, 1), len(steps))-1]
	return step + time.Duration(spread*float64(step)/5)
}

// awhile is how long a job of this age waits for a storage that is away: a quarter of that, between 2 s and 5 min, and
// up to a fifth more, as delay.
func awhile(age time.Duration, spread float64) time.Duration {
	step := min(max(age/4, 2*time.Second), 5*time.Minute)
	return step + time.Duration(spread*float64(step)/5)
}

// Work is for River.
func (w *worker) Work(outer context.Context, r *river.Job[db.JobArgs]) error {
	in := job.Queue(r.Queue)
	if to := w.queue.classes.Proper(w.handler.Kind, in); to != in {
		return w.move(outer, r.ID, in, to)
	}
	if shared := w.queue.shared[in]; shared != nil {
		leave, after := shared.enter(r.Args.Owner, time.Now())
		if leave == nil {
			return river.JobSnooze(after)
		}
		defer leave()
	}
	j := job.Job{
		ID:          r.ID,
		Kind:        w.handler.Kind,
		Args:        r.Args.Body,
		Attempt:     r.Attempt,
		MaxAttempts: w.handler.MaxAttempts,
		Age:         max(0, time.Since(r.CreatedAt)),
	}
	j.Crashes = db.CrashesOf(r.Metadata)
	if j.Crashes > job.MaxCrashes { // its process has died even while it was to be ended
		w.log(outer, j, errors.New("its process died of it too often"), true)
		return river.JobCancel(errors.New("gave up: the process died of it too often"))
	}
	// The handler's context ends with outer's, with our own cause, and when somebody has cancelled the job.
	ctx, end := context.WithCancelCause(context.WithoutCancel(outer))
	defer end(nil)
	defer context.AfterFunc(outer, func() {
		cause := context.Cause(outer)
		if errors.Is(cause, rivertype.ErrJobCancelledRemotely) {
			cause = job.ErrCancelled
		}
		end(cause)
	})()
	w.queue.mu.Lock()
	w.queue.running[j.ID] = end
	w.queue.mu.Unlock()
	defer func() {
		w.queue.mu.Lock()
		delete(w.queue.running, j.ID)
		w.queue.mu.Unlock()
	}()
	ctx, span := w.queue.tracer.Continue(ctx, r.Args.Trace, "process "+j.Kind, trace.Consumer)
	describe(span, j, in)
	err := w.try(ctx, j)
	if _, snoozed := errors.AsType[*job.SnoozeError](err); snoozed {
		span.End(nil)
	} else {
		span.End(err)
	}
	return w.outcome(ctx, outer, j, err)
}

// describe says of a span which job it is.
func describe(span trace.Span, j job.Job, in job.Queue) {
	if !span.Kept() {
		return
	}
	span.Text(trace.SystemKey, "river")
	span.Text(trace.OperationKey, "process")
	span.Text(trace.QueueKey, string(in))
	span.Text(trace.MessageKey, strconv.FormatInt(j.ID, 10))
	span.Text(trace.JobKey, j.Kind)
	span.Number(trace.AttemptKey, int64(j.Attempt))
}

// moveAgain is how long a job waits that could not be put where it belongs.
const moveAgain = time.Second

// move puts a job that an older version has inserted, and all others of its kind that wait where it does, into the
// queue where they belong: here they would hold up what somebody waits for.
func (w *worker) move(ctx context.Context, running int64, from, to job.Queue) error {
	if err := w.queue.db.MoveJobs(ctx, w.handler.Kind, running, from, to); err != nil {
		w.queue.logger.WarnContext(ctx, "job stands in another queue than it should", slog.Int64("job_id", running),
			slog.String("kind", w.handler.Kind), slog.Any("error", err))
		return river.JobSnooze(moveAgain)
	}
	return river.JobSnooze(0)
}

// try makes an error of a panic, which would otherwise be retried for ever.
func (w *worker) try(ctx context.Context, j job.Job) error {
	return fault.Guard(func() (err error) {
		crash.Blame(ctx, j.ID, func(ctx context.Context) { err = w.handler.Work(ctx, j) })
		return err
	})
}

// outcome says to River what becomes of the job.
func (w *worker) outcome(ctx, outer context.Context, j job.Job, err error) error {
	if err == nil {
		return nil
	}
	snooze, snoozed := errors.AsType[*job.SnoozeError](err)
	switch {
	case errors.Is(context.Cause(ctx), job.ErrCancelled):
		w.queue.logger.InfoContext(ctx, "job was cancelled", attrs(j)...)
		return river.JobCancel(job.ErrCancelled)
	case outer.Err() != nil && !errors.Is(outer.Err(), context.DeadlineExceeded): // stopped: no fault of the job's
		return fmt.Errorf("%w: %w", context.Canceled, err)
	case snoozed:
		return river.JobSnooze(max(snooze.For, 0))
	case ctx.Err() == nil && j.Waits(err):
		w.log(ctx, j, err, false)
		return river.JobSnooze(awhile(j.Age, rand.Float64())) //nolint:gosec // spreads load, guards nothing
	case fault.Permanent(err), j.Last():
		w.log(ctx, j, err, true)
		return river.JobCancel(err)
	}
	w.log(ctx, j, err, false)
	return err
}

func (w *worker) log(ctx context.Context, j job.Job, err error, final bool) {
	level := slog.LevelWarn
	if final && (j.Deadly() || !fault.Outside(err)) { // what others have given us is not for the operator to mend
		level = slog.LevelError
	}
	w.queue.logger.Log(ctx, level, "job attempt ended in an error",
		append(attrs(j), slog.Bool("final", final), slog.Any("error", err))...)
}

func attrs(j job.Job) []any {
	return []any{slog.Int64("job_id", j.ID), slog.String("kind", j.Kind), slog.Int("attempt", j.Attempt)}
}
