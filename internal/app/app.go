// Package app builds the object graph of the service and hands it to the command line. It is the one place that knows
// every package. All goroutines are services, run by package lifecycle.
package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"millrace/internal/app/cleanup"
	"millrace/internal/app/cli"
	"millrace/internal/app/metrics"
	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	"millrace/internal/control/event"
	"millrace/internal/control/signing"
	"millrace/internal/id"
	"millrace/internal/media/encode"
	"millrace/internal/media/speech"
	"millrace/internal/storage/db"
	"millrace/internal/web/api"
)

// Main runs one command and returns its exit code.
func Main(args, environ []string, stdout, stderr io.Writer) int {
	return cli.Main(args, environ, stdout, stderr, actions(stdout, stderr))
}

// actions are what the commands do.
func actions(stdout, stderr io.Writer) cli.Actions {
	keys := cli.MasterKey{Fingerprints: fingerprints, Rotate: rotateMasterKey}
	keys.Given, keys.Path, keys.Write = givenMasterKey, masterKeyPath, writeMasterKey
	return cli.Actions{
		Serve: func(ctx context.Context, cfg config.Config) error {
			return serve(ctx, cfg, logger(cfg, stderr), stdout)
		},
		Access:      openAccess,
		Events:      openEvents,
		Webhooks:    openWebhooks,
		SigningKeys: openSigningKeys,
		DRM:         openDRM,
		Retention:   openRetention,
		MasterKey:   keys,
		Audit:       openAudit,
		Nodes:       openNodes,
		OpenStorage: openStorage,
		UploadsLeft: uploadsLeft,

		DashboardLink: dashboardLink,
		SpeechEngines: func(cfg config.Config) ([]speech.Engine, error) {
			all, err := speechEngines(cfg, encode.NewBudget(encode.BudgetOptions{Cores: 1}))
			if err != nil {
				return nil, err
			}
			return all.All, nil
		},
	}
}

// openAccess opens the tokens of the configured database, whether the service runs or not.
func openAccess(ctx context.Context, cfg config.Config) (cli.Tokens, func() error, error) {
	d, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	return access.New(access.Options{Store: d.Access()}), d.Close, nil
}

// openAudit opens the audit log of the configured database, whether the service runs or not.
func openAudit(ctx context.Context, cfg config.Config) (audit.Log, func() error, error) {
	d, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	return d, d.Close, nil
}

// openRetention opens the retention of an environment, whether the service runs or not.
func openRetention(ctx context.Context, cfg config.Config, e id.Environment) (cli.Retention, func() error, error) {
	d, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	env, err := access.New(access.Options{Store: d.Access()}).Named(ctx, e, clock())
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	return cleanup.Of{DB: d, Environment: env.ID, Now: clock}, d.Close, nil
}

// openSigningKeys opens the signing keys of the configured database, whether the service runs or not.
func openSigningKeys(ctx context.Context, cfg config.Config, e id.Environment) (cli.SigningKeys, func() error, error) {
	d, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	env, err := access.New(access.Options{Store: d.Access()}).Named(ctx, e, clock())
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	return keysOf{signing.New(signing.Options{Store: d.Signing()}), env.ID}, d.Close, nil
}

// keysOf are the signing keys of an environment.
type keysOf struct {
	keys *signing.Service
	env  id.Environment
}

func (k keysOf) Create(ctx context.Context) (signing.Key, string, error) {
	return k.keys.Create(ctx, k.env, clock())
}

func (k keysOf) List(ctx context.Context, page, limit int) ([]signing.Key, error) {
	return k.keys.List(ctx, k.env, page, limit)
}

func (k keysOf) Delete(ctx context.Context, key id.SigningKey) error {
	return k.keys.Delete(ctx, k.env, key)
}

// openEvents opens the events of the configured database, whether the service runs or not.
func openEvents(ctx context.Context, cfg config.Config) (cli.Events, func() error, error) {
	d, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	return eventLog{d, formOf(d, "")}, d.Close, nil
}

// eventLog is what the command line reads of events.
type eventLog struct {
	*db.DB

	form api.EventForm
}

// Show is the event as the API shows it.
func (el eventLog) Show(ctx context.Context, e event.Event) (any, error) { return el.form.Show(ctx, e) }

// formOf shows events of a database in the form of the API of the service at a URL.
func formOf(d *db.DB, publicURL string) api.EventForm {
	return api.EventForm{
		Environment: d.Access().Environment,
		LiveStream:  d.LiveStreams().Find,
		Asset:       d.Assets().Find,
		Upload:      d.Uploads().Find,
		PublicURL:   publicURL,
	}
}

func logger(cfg config.Config, w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.LogLevel}
	var h slog.Handler = slog.NewTextHandler(w, o)
	if cfg.LogFormat == "json" {
		o.ReplaceAttr = withUnit
		h = slog.NewJSONHandler(w, o)
	}
	return slog.New(metrics.LogsOf(cfg.Traces, h))
}

// withUnit writes durations as text does, such as 1m30.5s: as JSON they would be bare nanoseconds.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

func clock() time.Time { return time.Now() }
