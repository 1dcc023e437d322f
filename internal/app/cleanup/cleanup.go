// Package cleanup builds what deletes media and assets: the jobs of the queue cleanup, but for those of uploads, and
// what asks for those of retention. It starts no goroutine.
package cleanup

import (
	"context"
	"log/slog"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/control/retention"
	"millrace/internal/id"
	"millrace/internal/lifecycle"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/db"
	"millrace/internal/worker/expire"
	"millrace/internal/worker/purge"
	"millrace/internal/worker/retain"
)

// Options is what the jobs need.
type Options struct {
	DB      *db.DB
	Assets  *asset.Work
	Objects blob.Store
	Deleted func(bytes int64) // counts what retention deletes; nil: nobody does
	Now     func() time.Time
	Logger  *slog.Logger
}

// Handlers are those of the jobs.
func Handlers(o Options) []job.Handler {
	kept := db.Retention(o.DB)
	retained := &retain.Worker{
		Store: kept, Assets: o.Assets, Objects: o.Objects, Deleted: o.Deleted, Now: o.Now,
		Logger: o.Logger,
	}
	return append(retained.Handlers(),
		(&purge.Worker{Assets: o.Assets, Store: o.Objects, Purged: kept.ForgetSize}).Handler(),
		(&expire.Worker{Assets: o.Assets, Now: o.Now}).Handler(),
	)
}

// Clock asks for the jobs of retention.
func Clock(d *db.DB, log *slog.Logger) lifecycle.Service {
	return &retain.Clock{Store: db.Retention(d), Queue: d, Logger: log}
}

// Retention is the service of retention policies.
func Retention(d *db.DB) retention.API { return retention.New(db.Retention(d)) }

// Of is the retention of an environment of a database, for commands.
type Of struct {
	DB          *db.DB
	Environment id.Environment
	Now         func() time.Time
}

// Policy reads the policy.
func (o Of) Policy(ctx context.Context) (retention.Policy, error) {
	return Retention(o.DB).Policy(ctx, o.Environment)
}

// Set changes the policy.
func (o Of) Set(ctx context.Context, l retention.Limits, grace time.Duration) (retention.Policy, error) {
	return Retention(o.DB).Set(ctx, o.Environment, l, grace)
}

// TurnOff removes the policy.
func (o Of) TurnOff(ctx context.Context) error { return Retention(o.DB).TurnOff(ctx, o.Environment) }

// Preview says what a policy would delete.
func (o Of) Preview(ctx context.Context, l retention.Limits, grace time.Duration) (retention.Preview, error) {
	return Retention(o.DB).Preview(ctx, o.Environment, l, grace)
}

// SetExempt exempts an asset, or ends that.
func (o Of) SetExempt(ctx context.Context, a id.Asset, exempt bool) error {
	return asset.New(asset.Options{Store: o.DB.Assets()}).SetExempt(ctx, o.Environment, a, exempt, o.Now())
}
