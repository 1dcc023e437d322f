// Package retain performs the jobs retention.run, which deletes the assets that the policy of an environment gives up,
// and retention.measure, which measures what media take. Its one goroutine is that of Clock.Run, which asks for both
// from time to time.
package retain

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/audit"
	"millrace/internal/control/job"
	"millrace/internal/control/retention"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/storage/blob"
)

// Assets is what it asks of assets; asset.Work fits.
type Assets interface {
	Retire(ctx context.Context, a id.Asset, gone func(*asset.Asset) bool, now time.Time) error
}

// Worker does retention.run and retention.measure.
type Worker struct {
	Store    retention.Store
	Assets   Assets
	Objects  blob.Store
	Deleted  func(bytes int64) // counts a deletion; may be nil
	Now      func() time.Time
	Logger   *slog.Logger
	policies *retention.Service
}

const (
	// batch is how many assets one run deletes before other jobs of the queue get its place.
	batch = 100
	pause = 5 * time.Second
	// together is how many media are measured at a time, and mostMeasured how many by one run.
	together, mostMeasured = 50, 5000
	// fresh is how long the size of media holds that seem not to change: renditions and images that are made at the
	// first request do not touch the asset.
	fresh = 30 * 24 * time.Hour
	// operation is what the audit log calls a deletion.
	operation = "delete-asset"
)

// Handlers are its places in the queue.
func (w *Worker) Handlers() []job.Handler {
	w.policies = retention.New(w.Store)
	return []job.Handler{
		{Kind: retention.JobRun, MaxAttempts: 10, Timeout: time.Hour, Work: w.run},
		{Kind: retention.JobMeasure, MaxAttempts: 3, Timeout: 6 * time.Hour, Work: w.measure},
	}
}

// run deletes what is due. Nothing is kept of how far it came: what is deleted is not there any more.
func (w *Worker) run(ctx context.Context, j job.Job) error {
	args, err := job.Decode[retention.RunArgs](j)
	if err != nil {
		return err
	}
	p, err := w.Store.Policy(ctx, args.Environment)
	if err != nil {
		return err
	}
	now, err := w.Store.Now(ctx) // a node whose clock is ahead must not delete early
	if err != nil {
		return err
	}
	count := 0
	for due, err := range w.policies.Due(ctx, p, now) {
		if err != nil {
			return err
		}
		if count == batch {
			return job.Snooze(pause)
		}
		// it may be turned off, or changed, at any time
		switch same, err := w.unchanged(ctx, p); {
		case err != nil:
			return err
		case !same:
			return nil
		}
		if err := w.delete(ctx, due, now); err != nil {
			return err
		}
		count++
	}
	return nil
}

func (w *Worker) unchanged(ctx context.Context, p retention.Policy) (bool, error) {
	now, err := w.Store.Policy(ctx, p.Environment)
	return now.Limits == p.Limits && now.UpdatedAt.Equal(p.UpdatedAt), err
}

// delete deletes an asset that is not spared at a time of the database, as anybody does, with its events, and an entry
// in the audit log.
func (w *Worker) delete(ctx context.Context, due retention.Due, at time.Time) error {
	a, now := due.Asset, w.Now()
	ctx = audit.With(ctx, audit.Entry{
		At: now, Environment: a.Environment, Actor: retention.Actor(), Operation: operation,
		Resource: audit.Resource{Type: asset.EventObject, ID: string(a.ID)},
	})
	err := w.Assets.Retire(ctx, a.ID, func(a *asset.Asset) bool { return !retention.Spared(a, at) }, now)
	switch {
	case err == nil:
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Conflict):
		return nil // deleted, exempted or worked on meanwhile
	default:
		return err
	}
	w.Logger.InfoContext(ctx, "asset deleted by retention", "environment_id", a.Environment, "asset_id", a.ID,
		"reason", due.Reason, "bytes", due.Bytes)
	if w.Deleted != nil {
		w.Deleted(due.Bytes)
	}
	return nil
}

// measure adds up what is stored of media that have changed. What can't be listed is passed over, and tried again
// the next time.
func (w *Worker) measure(ctx context.Context, _ job.Job) (failed error) {
	if err := w.Store.ForgetSizes(ctx, mostMeasured); err != nil {
		return err
	}
	var behind id.Media
	for measured := 0; measured < mostMeasured; {
		at, err := w.Store.Now(ctx) // what changes while it is measured is measured again
		if err != nil {
			return err
		}
		media, err := w.Store.Unmeasured(ctx, at.Add(-fresh), behind, together)
		if err != nil || len(media) == 0 {
			return cmp.Or(err, failed)
		}
		sizes := make([]retention.Sized, 0, len(media))
		for _, m := range media {
			var n int64
			if n, err = w.size(ctx, m); err != nil {
				failed = err
				continue
			}
			sizes = append(sizes, retention.Sized{Media: m, Bytes: n, At: at})
		}
		if err = w.Store.SetSizes(ctx, sizes); err != nil {
			return err
		}
		if len(media) < together {
			return failed
		}
		measured += len(sizes)
		behind = media[len(media)-1]
	}
	return job.Snooze(pause)
}

func (w *Worker) size(ctx context.Context, m id.Media) (n int64, err error) {
	for o, err := range blob.Objects(ctx, w.Objects, objectkey.Media(m)) {
		if err != nil {
			return 0, err
		}
		n += o.Size
	}
	return n, nil
}

// Queue takes jobs; one whose kind and key are unfinished already is skipped.
type Queue interface {
	Enqueue(ctx context.Context, jobs ...job.Insert) error
}

// Clock asks for the jobs: each node does, and the queue keeps one of each.
type Clock struct {
	Store  retention.Store
	Queue  Queue
	Logger *slog.Logger
}

// Every is how often it asks.
const Every = 10 * time.Minute

// Name implements lifecycle.Service.
func (*Clock) Name() string { return "retention" }

// Run implements lifecycle.Service.
func (c *Clock) Run(ctx context.Context) error {
	t := time.NewTicker(Every)
	defer t.Stop()
	for {
		if err := c.ask(ctx); err != nil && ctx.Err() == nil {
			c.Logger.WarnContext(ctx, "ask for retention", "error", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
		}
	}
}

func (c *Clock) ask(ctx context.Context) error {
	jobs := []job.Insert{retention.Measure()}
	policies, err := c.Store.Policies(ctx)
	if err != nil {
		return err
	}
	now, err := c.Store.Now(ctx)
	if err != nil {
		return err
	}
	for _, p := range policies {
		if !now.Before(p.StartsAt) {
			jobs = append(jobs, retention.Run(p.Environment))
		}
	}
	return c.Queue.Enqueue(ctx, jobs...)
}
