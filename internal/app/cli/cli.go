// Package cli turns a command line into one action and an exit code. It prints help, versions, settings, tokens and
// findings itself, and passes long-running commands on. It must never know how the service is built: it is given
// functions for that. It owns no goroutines.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"millrace/internal/app/doctor"
	"millrace/internal/config"
	"millrace/internal/control/audit"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/speech"
	"millrace/internal/storage/blob"
)

// Exit codes of every command.
const (
	ExitOK     = 0 // done
	ExitFailed = 1 // understood, but it did not work; doctor: something is wrong
	ExitUsage  = 2 // the command line, the environment or the configuration file cannot be understood

	ExitInterrupted = 130 // upload: by Ctrl-C; the same command goes on
)

// Actions are what the commands do beyond printing.
type Actions struct {
	// Serve runs the service until ctx ends, drains, and returns nil.
	Serve func(ctx context.Context, cfg config.Config) error
	// Access opens the tokens of the configured database; closeDB closes it.
	Access func(ctx context.Context, cfg config.Config) (tokens Tokens, closeDB func() error, err error)
	// Events opens the events of the configured database; closeDB closes it.
	Events func(ctx context.Context, cfg config.Config) (events Events, closeDB func() error, err error)
	// Webhooks opens the webhooks of an environment of the configured database, the default one for an empty ID;
	// closeDB closes it.
	Webhooks func(ctx context.Context, cfg config.Config, e id.Environment) (
		hooks webhook.API, env id.Environment, closeDB func() error, err error)
	// SigningKeys opens the signing keys of an environment likewise.
	SigningKeys func(ctx context.Context, cfg config.Config, e id.Environment) (
		keys SigningKeys, closeDB func() error, err error)
	// SpeechEngines are what would recognise speech, the one of this machine first; nothing runs yet.
	SpeechEngines func(cfg config.Config) ([]speech.Engine, error)
	// Audit opens the audit log of the configured database; closeDB closes it.
	Audit func(ctx context.Context, cfg config.Config) (log audit.Log, closeDB func() error, err error)
	// Nodes opens the nodes on the configured database; closeDB closes it.
	Nodes func(ctx context.Context, cfg config.Config) (nodes Nodes, closeDB func() error, err error)
	// DRM opens the DRM configurations of an environment likewise.
	DRM func(ctx context.Context, cfg config.Config, e id.Environment) (
		configurations DRMConfigurations, closeDB func() error, err error)
	// Retention opens the retention of an environment likewise.
	Retention func(ctx context.Context, cfg config.Config, e id.Environment) (
		keep Retention, closeDB func() error, err error)
	// MasterKey is what can be done with the master key of the configured database.
	MasterKey MasterKey
	// DashboardLink makes a link to the dashboard in the configured database.
	DashboardLink func(ctx context.Context, cfg config.Config) (url string, err error)
	// OpenStorage opens a storage as Serve would, but at the given URL.
	OpenStorage func(ctx context.Context, cfg config.Config, url config.Secret) (blob.Store, error)
	// UploadsLeft looks at direct uploads in the configured database and storage; nil: nobody does.
	UploadsLeft func(ctx context.Context, cfg config.Config) (doctor.UploadsLeft, error)
}

// oneWish is how long a signal counts as the same wish as the one before: timeout(1) and some supervisors send each
// twice.
const oneWish = 300 * time.Millisecond

// Main runs one command line and returns the exit code. The first Ctrl-C or SIGTERM ends the context, a second one the
// process.
func Main(args, environ []string, stdout, stderr io.Writer, a Actions) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// from then on a signal does what it does by itself
	defer context.AfterFunc(ctx, func() { time.AfterFunc(oneWish, stop) })()
	return Run(ctx, args, environ, stdout, stderr, a)
}

// Run is Main without signals.
func Run(ctx context.Context, args, environ []string, stdout, stderr io.Writer, a Actions) int {
	if len(args) > 0 && args[0] == completeCommand {
		printCandidates(stdout, args[1:])
		return ExitOK
	}
	l, cfg, err := load(args, environ, os.ReadFile)
	if ce, is := errors.AsType[*config.Error](err); is {
		fmt.Fprintln(stderr, ce.Report())
		return ExitUsage
	}
	if l.help != "" {
		fmt.Fprintln(stdout, l.help)
		return ExitOK
	}
	if !l.is(warning) {
		for _, w := range cfg.Warnings {
			fmt.Fprintln(stderr, "millrace: warning:", w)
		}
	}
	r := &request{
		Actions: a, command: l.name, cfg: cfg, settings: l.settings.Args(), words: l.words,
		now: time.Now(), environ: environ, out: stdout, err: stderr,
	}
	if !l.is(serving) {
		ctx = withAudit(ctx, r)
	}
	switch err = l.action.run(ctx, r); {
	case err == nil:
		return ExitOK
	case errors.Is(err, errInterrupted):
		return ExitInterrupted
	case errors.Is(err, errFound):
		return ExitFailed
	}
	for _, line := range sentences(err) {
		fmt.Fprintln(stderr, "millrace:", line)
	}
	return ExitFailed
}

// errFound is that a command did what it should, and that something is wrong, as it has said.
var errFound = errors.New("something is wrong")

// sentences is what a person is told of an error: its own sentences where it has some, else all of it.
func sentences(err error) []string {
	if m := fault.Messages(err); len(m) > 0 && !fault.Is(err, fault.Internal) {
		if fault.Is(err, fault.Unavailable) {
			m = append(slices.Clone(m), "millrace doctor with the same settings says what is wrong")
		}
		return m
	}
	return []string{err.Error()}
}
