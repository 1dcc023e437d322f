// Package app builds the object graph of the service and hands it to the command line: the one place that knows every room.
// Goroutines: services, all through lifecycle.
package app

import (
	"context"
	"io"
	"log/slog"
	"time"

	"millrace/internal/app/cli"
	"millrace/internal/config"
	"millrace/internal/control/access"
)

// Main runs one command and returns its exit code.
func Main(args, environ []string, stdout, stderr io.Writer) int {
	return cli.Main(args, environ, stdout, stderr, cli.Actions{
		Serve: func(ctx context.Context, cfg config.Config) error {
			return serve(ctx, cfg, logger(cfg, stderr), stdout)
		},
		Access:      openAccess,
		OpenStorage: openStorage,
	})
}

// openAccess opens the tokens of the configured database, whether the service runs or not.
func openAccess(ctx context.Context, cfg config.Config) (cli.Tokens, func() error, error) {
	d, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	return access.New(access.Options{Store: d.Access()}), d.Close, nil
}

func logger(cfg config.Config, w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogFormat == "json" {
		o.ReplaceAttr = withUnit
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// withUnit writes durations as text does, such as 1m30.5s: as JSON they would be bare nanoseconds.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

func clock() time.Time { return time.Now() }
