// Package cli turns a command line into one action and an exit code: it prints help, versions, settings, tokens and findings, and
// hands the long-running commands on. It must never know how the service is built; it is given functions for that.
// It owns no goroutines.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"millrace/internal/app/demo"
	"millrace/internal/app/doctor"
	"millrace/internal/config"
	"millrace/internal/control/audit"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/speech"
	"millrace/internal/storage/blob"
)

// Actions are what the commands do beyond printing.
type Actions struct {
	// Serve runs the service until ctx ends, drains, and returns nil.
	Serve func(ctx context.Context, cfg config.Config) error
	// Access opens the tokens of the configured database; closeDB closes it.
	Access func(ctx context.Context, cfg config.Config) (tokens Tokens, closeDB func() error, err error)
	// Events opens the events of the configured database; closeDB closes it.
	Events func(ctx context.Context, cfg config.Config) (events Events, closeDB func() error, err error)
	// Webhooks opens the webhooks of an environment of the configured database, the default one for an empty ID; closeDB
	// closes it.
	Webhooks func(ctx context.Context, cfg config.Config, e id.Environment) (hooks webhook.API, env id.Environment, closeDB func() error, err error)
	// SigningKeys opens the signing keys of an environment likewise.
	SigningKeys func(ctx context.Context, cfg config.Config, e id.Environment) (keys SigningKeys, closeDB func() error, err error)
	// SpeechEngines are what would recognise speech, the one of this machine first; nothing runs yet.
	SpeechEngines func(cfg config.Config) ([]speech.Engine, error)
	// Audit opens the audit log of the configured database; closeDB closes it.
	Audit func(ctx context.Context, cfg config.Config) (log audit.Log, closeDB func() error, err error)
	// Nodes opens the nodes on the configured database; closeDB closes it.
	Nodes func(ctx context.Context, cfg config.Config) (nodes Nodes, closeDB func() error, err error)
	// DRM opens the DRM configurations of an environment likewise.
	DRM func(ctx context.Context, cfg config.Config, e id.Environment) (configurations DRMConfigurations, closeDB func() error, err error)
	// MasterKey is what can be done with the master key of the configured database.
	MasterKey MasterKey
	// DashboardLink makes a link to the dashboard in the configured database.
	DashboardLink func(ctx context.Context, cfg config.Config) (url string, err error)
	// OpenStorage opens a storage as Serve would, but at the given URL.
	OpenStorage func(ctx context.Context, cfg config.Config, url config.Secret) (blob.Store, error)
	// UploadsLeft looks at direct uploads in the configured database and storage; nil: nobody does.
	UploadsLeft func(ctx context.Context, cfg config.Config) (doctor.UploadsLeft, error)
}

// oneWish is how long a signal counts as the same wish as the one before: timeout(1) and some supervisors send each twice.
const oneWish = 300 * time.Millisecond

// Main runs one command line and returns the exit code. The first Ctrl-C or SIGTERM ends the context, a second one the process.
func Main(args, environ []string, stdout, stderr io.Writer, a Actions) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(oneWish, stop) })() // from then on a signal does what it does by itself
	return Run(ctx, args, environ, stdout, stderr, a)
}

// Run is Main without signals.
func Run(ctx context.Context, args, environ []string, stdout, stderr io.Writer, a Actions) int {
	c, cfg, err := config.Load(args, environ, os.ReadFile)
	if ce, is := errors.AsType[*config.Error](err); is {
		fmt.Fprintln(stderr, ce.Report())
		return config.ExitUsage
	}
	if c.Name != config.Check && c.Name != config.Doctor { // those two show them in their own way
		for _, w := range cfg.Warnings {
			fmt.Fprintln(stderr, "millrace: warning:", w)
		}
	}
	if c.Name != config.Serve && c.Name != config.Demo {
		ctx = withAudit(ctx, c, environ, time.Now())
	}
	healthy, err := run(ctx, c, cfg, environ, stdout, stderr, a)
	if errors.Is(err, errInterrupted) {
		return config.ExitInterrupted
	}
	if err != nil {
		for _, line := range sentences(err) {
			fmt.Fprintln(stderr, "millrace:", line)
		}
		return config.ExitFailed
	}
	if !healthy {
		return config.ExitFailed
	}
	return config.ExitOK
}

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

func run(
	ctx context.Context, c config.Command, cfg config.Config, environ []string, stdout, stderr io.Writer, a Actions,
) (healthy bool, err error) {
	switch c.Name {
	case config.Help:
		_, err = fmt.Fprintln(stdout, c.Text)
	case config.Version:
		_, err = fmt.Fprintf(stdout, "millrace %s (%s, %s/%s)\n", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	case config.Check:
		err = cfg.Print(stdout)
	case config.Doctor:
		open := func(ctx context.Context, url config.Secret) (blob.Store, error) { return a.OpenStorage(ctx, cfg, url) }
		engines, bad := a.SpeechEngines(cfg)
		if bad != nil {
			return false, bad
		}
		o := doctor.Options{Config: cfg, OpenStorage: open, SpeechEngines: engines}
		if a.UploadsLeft != nil {
			o.UploadsLeft = func(ctx context.Context) (doctor.UploadsLeft, error) { return a.UploadsLeft(ctx, cfg) }
		}
		return doctor.Run(ctx, doctor.Checks(o), stdout, c.JSON)
	case config.Demo:
		err = demo.Run(ctx, demo.Options{Config: cfg, Flags: c.SettingFlags, Duration: c.Duration, Out: stdout})
	case config.Serve:
		err = a.Serve(ctx, cfg)
	case config.TokenCreate, config.TokenList, config.TokenRevoke:
		err = tokens(ctx, c, cfg, stdout, a)
	case config.EnvironmentCreate, config.EnvironmentList, config.EnvironmentRename,
		config.SetQuality, config.SetLiveRungs, config.SetCaptions, config.SetFrameAncestors:
		err = environments(ctx, c, cfg, stdout, a)
	case config.Audit:
		err = auditLog(ctx, c, cfg, stdout, a)
	case config.Nodes:
		err = listNodes(ctx, c, cfg, stdout, a)
	case config.KeyCreate, config.KeyList, config.KeyDelete:
		err = signingKeys(ctx, c, cfg, stdout, a)
	case config.DRMCreate, config.DRMList, config.DRMVendors, config.DRMDelete:
		err = drmConfigurations(ctx, c, cfg, stdout, a)
	case config.MasterKeyFingerprint:
		return fingerprints(ctx, cfg, stdout, a.MasterKey)
	case config.MasterKeyRotate:
		err = rotateMasterKey(ctx, cfg, c.NewKeyFile, stdout, a.MasterKey)
	case config.TokenSign:
		err = signToken(c.Sign, time.Now(), os.ReadFile, stdout)
	case config.DashboardLink:
		err = dashboardLink(ctx, cfg, stdout, a)
	case config.Upload:
		err = upload(ctx, c, cfg, environ, stdout, stderr)
	case config.EventsTail:
		err = tail(ctx, c, cfg, stdout, a)
	case config.WebhookCreate, config.WebhookList, config.WebhookEnable, config.WebhookDisable, config.WebhookDelete, config.WebhookRotate,
		config.WebhookTest, config.WebhookDeliveries, config.WebhookReplay,
		config.WebhookRetry, config.WebhookSkip:
		err = webhooks(ctx, c, cfg, stdout, a)
	default:
		err = fmt.Errorf("command %q has no action", c.Name)
	}
	return true, err
}

// sayUnless prints a line about what was done, unless it failed.
func sayUnless(err error, w io.Writer, format string, args ...any) error {
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, format+"\n", args...)
	return err
}

// Version is the module's version, or the commit it was built from, or dev.
func Version() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "dev"
}
